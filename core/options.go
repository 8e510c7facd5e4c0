package core

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

const (
	defaultPrefix  = "lock:"
	defaultLease   = 30 * time.Second
	defaultTimeout = 2 * time.Second
	quorumTimeout  = 500 * time.Millisecond // of each member
	mostPermits    = 10_000                 // a command of Redis looks through all holders
	// Longer ones are mistakes, which nobody would live to see the end of.
	longestLease  = 24 * time.Hour
	longestWindow = option.LongestWindow
)

// Lease is how long a lock outlives its holder's last sign of life. While the lock is held, a
// watchdog renews it every third of d, so a handler may run far longer; when the process dies, the
// lock is free after at most d. The default is 30 s; 1 ms to a day, in whole milliseconds. See
// [FixedLease] for a lock that is not renewed.
func Lease(d time.Duration) Option {
	return ofDuration("Lease", d, longestLease, func(s *settings) { s.Lease, s.Fixed = d.Truncate(time.Millisecond), false })
}

// FixedLease ends the lock after d whatever happens: nothing renews it but [Lock.Refresh]. At its
// end [Lock.Context] is cancelled with [ErrLost]. 1 ms to a day, in whole milliseconds.
func FixedLease(d time.Duration) Option {
	return ofDuration("FixedLease", d, longestLease, func(s *settings) { s.Lease, s.Fixed = d.Truncate(time.Millisecond), true })
}

// Wait is the longest wait for a busy lock; after it, [*BusyError], or [ErrUnavailable] when Redis
// has failed for the last second. The request that is under way then may still bring the lock. 0 is
// [NoWait]; otherwise at least 1 ms. By default a call waits until its context is done, or for a lease
// where the context holds another lock: others may wait for that one.
func Wait(d time.Duration) Option {
	if d != 0 && d < time.Millisecond {
		return refused("Wait(%v): give 0, or at least 1ms", d)
	}
	return Option{set: func(s *settings) {
		s.Wait = &d
		s.needsToWait("Wait")
	}}
}

// NoWait is Wait(0): a busy lock is refused at once.
func NoWait() Option { return Wait(0) }

// KeepFor is a dedup window: after a success the key stays taken until d after it was acquired, for
// everybody, so that a repeated request is refused although the first is done. Success is
// [Lock.Unlock], or nil returned to [Locker.Do]; after [Lock.Abort], an error or a panic the key is
// free at once. Of nested locks the outermost counts. [Locker.ForceUnlock] ends a window. 1 ms to
// 366 days, in whole milliseconds.
func KeepFor(d time.Duration) Option {
	return ofDuration("KeepFor", d, longestWindow, func(s *settings) { s.Window = d.Truncate(time.Millisecond) })
}

// MaxHold bounds how long a lock is kept alive: after d the watchdog stops and [Lock.Context] is
// cancelled with [ErrMaxHold]. The lock is free when it is unlocked or its lease ends: a handler that
// obeys its context ends in time. Of locks nested by context the outermost counts. 1 ms to 366 days.
func MaxHold(d time.Duration) Option {
	return ofDuration("MaxHold", d, longestWindow, func(s *settings) { s.MaxHold = d })
}

// MaxWaiters bounds how many calls of this Locker wait for one key; one more is refused at once with [*BusyError].
// Calls of [Locker.LockAll] that ask again, 32 at most, do not count. At least 1; the default is no bound.
func MaxWaiters(n int) Option {
	if n < 1 {
		return refused("MaxWaiters(%d): give at least 1, or NoWait", n)
	}
	return Option{set: func(s *settings) {
		s.needsToWait("MaxWaiters")
		s.MaxWaiters = &n
	}}
}

// Owner names the owner of a lock, so that the same id re-enters it from another goroutine or
// process. It is for a single call: [New], [Wrap] and middleware refuse it, because calls that
// share an owner do not exclude one another. An id is 1 to 128 bytes without control characters and
// does not begin with "latchkey:". Calls that enter go past those that wait. The lock has one lease for
// all who have entered it: when one of their processes dies, it is free a lease after the others have
// left, not while they come and go. Owner cannot be combined with [KeepFor], whether the call or [New]
// has it, or a Locker of [NewQuorum].
func Owner(id string) Option {
	return Option{set: func(s *settings) {
		s.Owner.Chosen = id
		s.CheckOwner("Owner", id, option.MaxOwnerBytes)
	}}
}

// Shared has the lock go to all who share it at once: readers beside one another, while calls
// without it have the lock alone. Calls are served in order of arrival: one that shares waits
// behind one that waits to be alone, and neighbours that share get the lock together.
//
// Each holder has a lease, a fencing token and a watchdog of its own, and learns of its own loss; one
// that died holds others up for its lease. A context that shares a lock enters it at once, past those
// who wait; one that has it alone enters its own lock. To take it alone while one shares it fails
// with [ErrUpgrade]. Shared is for a call or middleware, not for [New], and cannot be combined with
// [Permits], [KeepFor] or a Locker of [NewQuorum].
func Shared() Option { return inForm("Shared", store.Shared, nil) }

// Permits has the lock go to up to n holders at once, in order of arrival, also where others wait
// that share it or want it alone. n is the caller's own, 1 to 10,000: a call is admitted while
// fewer than n hold the lock, whatever the others' n is. Calls without Permits exclude all that
// have one. A call that gets none fails with [ErrNoPermit], which is [ErrNotAcquired] as well.
//
// Holders are as those of [Shared]. A context that has a permit enters the lock without another; to
// take it alone, or share it, fails with [ErrUpgrade]. Permits is for a call or middleware, not for
// [New], and cannot be combined with Shared, [KeepFor] or a Locker of [NewQuorum].
func Permits(n int) Option {
	if n < 1 || n > mostPermits {
		return refused("Permits(%d): give 1 to %d", n, mostPermits)
	}
	return inForm("Permits", store.Permits(n), nil)
}

// inForm is the option of a form; each has the permits of each key.
func inForm(name string, form store.Form, each []int) Option {
	return Option{set: func(s *settings) {
		if s.Scope == option.OfLocker {
			s.Fail("%s is for a call or middleware, not for New: no call could have a lock alone", name)
		}
		if !s.Form.Includes(form) || s.Form.NeedsPermit() && (s.PermitsEach == nil) != (each == nil) {
			s.Fail("Permits, PermitsEach and Shared cannot be combined: leave the others out")
		}
		s.Form, s.PermitsEach = form.Weighing(max(form.Weight(), s.Form.Weight())), each
	}}
}

// BackgroundRelease has wrappers return without waiting for the release of the lock, a round trip to
// Redis earlier. Wrappers are [Locker.Do], [Locker.DoAll], [Wrap], [WrapAll] and middleware.
// [Lock.Unlock], [Lock.Abort] and [Locker.Lead] wait nevertheless. When the wrapper returns,
// [Lock.Context] is done, a loss that is known by then is returned, and the release is under way. It
// is repeated as that of Lock.Unlock is, and [Locker.Close] waits for it. What changes:
//
//   - The next call for the key may find the lock still taken. It waits for the release, as for any
//     other; one that does not wait, such as [Locker.TryLock], may be refused.
//   - A loss that only the release tells comes as [EventLost] and in the log, not as [ErrLost].
//     [EventReleased] may come after the wrapper has returned, and the hooks of the Redis client do
//     not see the values of its context.
//   - A process that ends without Locker.Close may leave a lock whose work is done, until the lease
//     ends. Close the Locker after the server's Shutdown.
//
// Calls that leave the release to their caller, such as Locker.Lock, refuse it. It has no effect with
// [NoWait], or a client's next request might be refused because of its last one; with [KeepFor], whose
// window must be there before a client learns that the work is done; and for a lock of which others may
// have a hold, by [Owner], [Lock.ShareOwner], a context that holds it, or the ticket of [Lock.Handover].
func BackgroundRelease() Option {
	return Option{set: func(s *settings) {
		if s.Scope >= option.OfLock {
			s.Fail("BackgroundRelease is for New, Do, Wrap and middleware, which release the lock: Unlock waits")
		}
		s.Background = true
	}}
}

// Name is what Observers call a lock, such as "orders": one word for all keys of a kind, never from a
// request, for it labels metrics. The default is empty; middleware has the name of its parameter.
// Bytes that are not UTF-8 are replaced.
func Name(name string) Option {
	name = strings.ToValidUTF8(name, "\uFFFD")
	return Option{set: func(s *settings) { s.Name = name }}
}

// Prefix is what the names of all locks begin with in Redis; Lockers exclude one another only when they share it.
// Those on unrelated servers need different ones: what a context owns on one, it owns on the other. It ends with a
// colon and has no other, so that no lock has the name of one with another prefix; braces and control characters are
// refused. The default is "lock:". Option of [New] only.
func Prefix(p string) Option {
	if strings.ContainsAny(p, "{}") || strings.ContainsFunc(p, option.IsControl) || len(p) > store.MaxKeyBytes {
		return refused("Prefix(%q): braces, control characters and more than %d bytes are not allowed", p, store.MaxKeyBytes)
	}
	if plain := strings.ReplaceAll(cmp.Or(strings.Trim(p, ":"), "lock"), ":", ".") + ":"; p != plain {
		return refused("Prefix(%q): it must end with a colon and have no other, "+
			"or locks could have the names of another prefix's: write %q", p, plain)
	}
	return ofNew("Prefix", func(s *settings) { s.Prefix = p })
}

// Timeout bounds one request to Redis; after it the outcome counts as unknown and is compensated in
// the background. A renewal never takes longer than a third of its lease. Option of [New] only. The
// default is 2 s or a third of the lease, whichever is less; 1 ms to a day.
func Timeout(d time.Duration) Option {
	return ofNew("Timeout", ofDuration("Timeout", d, longestLease, func(s *settings) { s.Timeout = d }).set)
}

// Logger receives what no caller can be told: lost locks as errors, renewals and releases in trouble
// as warnings, with the context of the call that wanted the lock: its values, not its end. Each kind has
// at most one line a second. What comes meanwhile is told together, a second later or at the end of
// [Locker.Close]: omitted says how many there were beside the one, and omitted_keys has their keys, up to
// 8 KiB. A [Locker.ForceUnlock] is information. Middleware logs there, too, what becomes of its requests and tasks.
// The default is [slog.Default]. Option of [New] only.
func Logger(logger *slog.Logger) Option {
	if logger == nil {
		return refused("Logger is nil")
	}
	return ofNew("Logger", func(s *settings) { s.Logger = logger })
}

// Replicas makes a lock count only when n replicas have it
// (https://redis.io/docs/latest/commands/wait/), so that a failover to one of them keeps it.
// [Locker.Lock] returns when they have acknowledged it; when fewer have within timeout, it is given
// back and the error is [ErrUnavailable]. A renewal prolongs a lock only when they have
// acknowledged that too: while they are missing, held locks end with their leases ([ErrLost]). A
// release is not waited for; a failover may bring a lock back for the rest of its lease. Where n is
// less than all, a replica that lacks the lock may be promoted; where n is all, nothing can be
// locked while one is missing.
//
// A replica ends a lock by its own clock: the clocks of master and replicas must agree to well
// below a lease, or a failover may free a lock that is held. The first request by a [redis.Client],
// Sentinel's included, has them compared in the background, with INFO and TIME. A difference of
// more than a tenth of the lease is logged as a warning.
//
// n is at least 1; timeout is at least 1 ms in whole milliseconds, less than [Timeout] and less
// than the client's ReadTimeout. Option of [New] only, with a [redis.Client] or a
// [redis.ClusterClient]; [NewQuorum] refuses it, its members vouch for one another.
func Replicas(n int, timeout time.Duration) Option {
	if n < 1 || timeout < time.Millisecond {
		return refused("Replicas(%d, %v): give at least 1 replica and at least 1ms", n, timeout)
	}
	return ofNew("Replicas", func(s *settings) {
		s.Replicas = conn.Replicas{N: n, Within: timeout.Truncate(time.Millisecond)}
	})
}

// ShardedPubSub sends wake-ups by sharded pub/sub, of Redis 7
// (https://redis.io/docs/latest/develop/pubsub/#sharded-pubsub): in a cluster a release then costs
// the nodes of its shard something, and not all nodes. All who wait for the same locks must agree
// about it, or they wake one another by polling only; a Redisson client of a cluster does so with
// shardedSubscriptionMode AUTO or ON. Option of [New] and [NewQuorum] only.
func ShardedPubSub() Option {
	return ofNew("ShardedPubSub", func(s *settings) { s.Sharded = true })
}

// Observe has o told of all locks of the Locker. Given more than once, each of them is told, in
// that order. Option of [New] and [NewQuorum] only.
func Observe(o Observer) Option {
	if o == nil {
		return refused("Observe: the Observer is nil")
	}
	return ofNew("Observe", func(s *settings) { s.Observers = append(s.Observers, o) })
}
