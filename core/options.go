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

// Option changes how locks are taken. Given to [New], [NewQuorum] or [Open] it is a default, given to
// [Locker.Lock], [Locker.Do], [Wrap] or middleware it is for that call. A later option overrides an
// earlier one. A bad value is an error of the function that receives the option; [Wrap] and
// middleware panic with it at set-up.
type Option struct{ set func(*settings) }

// settings are what the options of New and of one call add up to.
type settings struct {
	option.Settings

	// Of New only.
	prefix    string
	describe  string        // "": by the host
	timeout   time.Duration // 0: derived from the lease
	replicas  conn.Replicas
	sharded   bool
	logger    *slog.Logger
	observers []Observer
}

// with returns what these and further options add up to, and all that is wrong with them.
func (s settings) with(scope option.Scope, opts []Option) (*settings, error) {
	s.Scope = scope
	for _, o := range opts {
		if o.set == nil {
			o = badOption("an Option is empty: make it with a function of package core")
		}
		o.set(&s)
	}
	return &s, s.Err()
}

// badOption is an option that tells what is wrong with it.
func badOption(format string, args ...any) Option {
	return Option{set: func(s *settings) { s.Fail(format, args...) }}
}

// ofDuration is an option that sets a duration, within its bounds.
func ofDuration(name string, d, longest time.Duration, set func(*settings)) Option {
	if d < time.Millisecond || d > longest {
		return badOption("%s(%v): give at least 1ms and at most %v", name, d, longest)
	}
	return Option{set: set}
}

// ofNew is an option that calls refuse.
func ofNew(name string, set func(*settings)) Option {
	return Option{set: func(s *settings) {
		if s.Scope != option.OfLocker {
			s.Fail("%s is an option of New, not of a single call", name)
			return
		}
		set(s)
	}}
}

// Lease is how long a lock outlives its holder's last sign of life. While the lock is held, a
// watchdog renews it every third of d, so a handler may run far longer; when the process dies, the
// lock is free after at most d. The default is 30 s; 1 ms to a day, in whole milliseconds. See
// [FixedLease] for a lock that is not renewed.
func Lease(d time.Duration) Option {
	return ofDuration("Lease", d, option.LongestLease, func(s *settings) { s.Lease, s.Fixed = d.Truncate(time.Millisecond), false })
}

// FixedLease ends the lock after d whatever happens: nothing renews it but [Lock.Refresh]. At its
// end [Lock.Context] is cancelled with [ErrLost]. 1 ms to a day, in whole milliseconds.
func FixedLease(d time.Duration) Option {
	return ofDuration("FixedLease", d, option.LongestLease, func(s *settings) { s.Lease, s.Fixed = d.Truncate(time.Millisecond), true })
}

// Wait is the longest wait for a busy lock; after it, [*BusyError], or [ErrUnavailable] when Redis
// has failed for the last second. The request that is under way then may still bring the lock. 0 is
// [NoWait]; otherwise at least 1 ms. By default a call waits until its context is done, or for a lease
// where the context holds another lock: others may wait for that one.
func Wait(d time.Duration) Option {
	if d != 0 && d < time.Millisecond {
		return badOption("Wait(%v): give 0, or at least 1ms", d)
	}
	return Option{set: func(s *settings) {
		s.Wait, s.RefusesInWindow = &d, false
		s.needsToWait("Wait")
	}}
}

// NoWait is Wait(0): a busy lock is refused at once.
func NoWait() Option { return Wait(0) }

// KeepFor is a dedup window: after a success the key stays taken until d after it was acquired, for
// everybody, so that a repeated request is refused although the first is done. Success is
// [Lock.Unlock], or nil returned to [Locker.Do]; after [Lock.Abort], an error or a panic the key is
// free at once. Of nested locks the outermost counts. [Locker.ForceUnlock] ends a window. For [Once] it
// says for how long the result is kept. 1 ms to 366 days, in whole milliseconds.
func KeepFor(d time.Duration) Option {
	return ofDuration("KeepFor", d, option.LongestWindow, func(s *settings) { s.Window = d.Truncate(time.Millisecond) })
}

// MaxHold bounds how long a lock is kept alive: after d the watchdog stops and [Lock.Context] is
// cancelled with [ErrMaxHold]. The lock is free when it is unlocked or its lease ends: a handler that
// obeys its context ends in time. Of locks nested by context the outermost counts. 1 ms to 366 days.
func MaxHold(d time.Duration) Option {
	return ofDuration("MaxHold", d, option.LongestWindow, func(s *settings) { s.MaxHold = d })
}

// MaxWaiters bounds how many calls of this Locker wait for one key; one more is refused at once with [*BusyError].
// Calls of [Locker.LockAll] that ask again, 32 at most, do not count. At least 1; the default is no bound.
func MaxWaiters(n int) Option {
	if n < 1 {
		return badOption("MaxWaiters(%d): give at least 1, or NoWait", n)
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

// needsToWait refuses an option where no call waits.
func (s *settings) needsToWait(name string) {
	if s.Scope == option.OfTryLock && s.Waits() {
		s.Fail("%s has no effect in TryLock and Resume, which never wait: leave it out, or call Lock", name)
	}
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
		return badOption("Prefix(%q): braces, control characters and more than %d bytes are not allowed", p, store.MaxKeyBytes)
	}
	if plain := strings.ReplaceAll(cmp.Or(strings.Trim(p, ":"), "lock"), ":", ".") + ":"; p != plain {
		return badOption("Prefix(%q): it must end with a colon and have no other, "+
			"or locks could have the names of another prefix's: write %q", p, plain)
	}
	return ofNew("Prefix", func(s *settings) { s.prefix = p })
}

// Timeout bounds one request to Redis; after it the outcome counts as unknown and is compensated in
// the background. A renewal never takes longer than a third of its lease. A hook of the client's that blocks may hold up
// a request for longer. A Redis of which answers take a quarter of Timeout longer than usual, or 250 ms, is asked for
// less, see [ErrOverloaded]. Option of [New] only. The default is 2 s or a third of the lease, whichever is less;
// 1 ms to a day.
func Timeout(d time.Duration) Option {
	return ofNew("Timeout", ofDuration("Timeout", d, option.LongestLease, func(s *settings) { s.timeout = d }).set)
}

// Logger receives what no caller can be told: lost locks as errors, renewals and releases in trouble
// as warnings, with the context of the call that wanted the lock: its values, not its end. Each kind has
// at most one line a second, that nothing is heard of wake-ups one a minute. What comes meanwhile is told
// together, a second later or at the end of [Locker.Close]: omitted says how many there were beside the
// one, and omitted_keys has their keys, up to 8 KiB. A [Locker.ForceUnlock] is information. The default is
// [slog.Default].
//
// Its handler gets these lines in order, from a goroutine of its own, and may block or panic: no lock, renewal
// or call waits for it, and Close does for [Timeout] at most. Of lines that wait for it there are at most 256;
// unwritten_lines counts those beyond, or lost in a panic, in the next line. Middleware logs there, too, what
// becomes of its requests and tasks, each of which waits for its own lines. Option of [New] only.
func Logger(logger *slog.Logger) Option {
	if logger == nil {
		return badOption("Logger is nil")
	}
	return ofNew("Logger", func(s *settings) { s.logger = logger })
}

// Replicas makes a lock count only when n replicas have it
// (https://redis.io/docs/latest/commands/wait/), so that a failover to one of them keeps it.
// [Locker.Lock] returns when they have acknowledged it; when fewer have within timeout, it is given
// back and the error is [ErrUnavailable]. A renewal prolongs a lock only when they have
// acknowledged that too: while they are missing, held locks end with their leases ([ErrLost]). A
// release is not waited for; a failover may bring a lock back for the rest of its lease. Where n is
// less than all, a replica that lacks the lock may be promoted, and others may stay with the old
// master and confirm renewals there: two may hold a lock. Where n is all, nothing can be locked while
// one is missing.
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
		return badOption("Replicas(%d, %v): give at least 1 replica and at least 1ms", n, timeout)
	}
	return ofNew("Replicas", func(s *settings) {
		s.replicas = conn.Replicas{N: n, Within: timeout.Truncate(time.Millisecond)}
	})
}

// ShardedPubSub sends wake-ups by sharded pub/sub, of Redis 7
// (https://redis.io/docs/latest/develop/pubsub/#sharded-pubsub): in a cluster a release then costs
// the nodes of its shard something, and not all nodes. All who wait for the same locks must agree
// about it, or they wake one another by polling only; a Redisson client of a cluster does so with
// shardedSubscriptionMode AUTO or ON. Option of [New] and [NewQuorum] only.
func ShardedPubSub() Option {
	return ofNew("ShardedPubSub", func(s *settings) { s.sharded = true })
}

// Observe has o told of all locks of the Locker. Given more than once, each of them is told, in
// that order. Option of [New] and [NewQuorum] only.
func Observe(o Observer) Option {
	if o == nil {
		return badOption("Observe: the Observer is nil")
	}
	return ofNew("Observe", func(s *settings) { s.observers = append(s.observers, o) })
}
