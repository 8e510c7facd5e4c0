package core

import (
	"log/slog"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Option changes how locks are taken. Given to [New] it is a default, given to
// [Locker.Lock], [Locker.TryLock], [Locker.Do], [Wrap] or middleware it is for
// that call. A later option overrides an earlier one. A bad value is reported
// as an error by the function that receives the option; middleware panics with it
// at set-up.
type Option struct{ set func(*settings) }

// Prefix is what the names of all locks begin with in Redis. Option of [New]
// only. The default is "lock:". It ends with a colon and has no other, so that no lock
// has the name of one with another prefix. Braces and control characters are refused.
// Lockers exclude one another only when they share the prefix.
func Prefix(p string) Option {
	return ofNew("Prefix", func(s *settings) {
		if strings.ContainsAny(p, "{}") || strings.ContainsFunc(p, option.IsControl) || len(p) > store.MaxKeyBytes {
			s.Fail("Prefix(%q): braces, control characters and more than %d bytes are not allowed", p, store.MaxKeyBytes)
		} else if strings.IndexByte(p, ':') != len(p)-1 || p == "" {
			s.Fail("Prefix(%q): it must end with a colon and have no other, or locks could have the names of another prefix's: write %q", p, onePart(p))
		}
		s.Prefix = p
	})
}

// onePart is a prefix like another one that New does not accept.
func onePart(p string) string {
	if name := strings.Trim(p, ":"); name != "" {
		return strings.ReplaceAll(name, ":", ".") + ":"
	}
	return defaultPrefix
}

// Lease is how long a lock outlives its holder's last sign of life. While the
// lock is held a watchdog renews it every third of d, so a handler may run far
// longer; when the process dies, the lock is free after at most d. The default
// is 30 s; at least 1 ms and at most a day, in whole milliseconds. See [FixedLease] for a lock
// that is not renewed.
func Lease(d time.Duration) Option {
	return ofDuration("Lease", d, longestLease, func(s *settings) { s.Lease, s.Fixed = d.Truncate(time.Millisecond), false })
}

// FixedLease ends the lock after d whatever happens: nothing renews it but
// [Lock.Refresh]. When it ends while the lock is held, [Lock.Context] is
// cancelled with [ErrLost]. At least 1 ms and at most a day, in whole milliseconds.
func FixedLease(d time.Duration) Option {
	return ofDuration("FixedLease", d, longestLease, func(s *settings) { s.Lease, s.Fixed = d.Truncate(time.Millisecond), true })
}

// Wait is the longest wait for a busy lock; after it, [*BusyError], or
// [ErrUnavailable] when Redis has failed for the last second. The request
// that is under way when d ends may still bring the lock. Wait(0) is
// [NoWait]. The default is to wait until the context is done, or for a lease where the
// context holds another lock: others may wait for that one. A negative d is refused.
func Wait(d time.Duration) Option {
	return Option{func(s *settings) {
		if d < 0 {
			s.Fail("Wait(%v): give 0 or more", d)
		}
		s.Wait = &d
	}}
}

// NoWait refuses a busy lock at once with [*BusyError].
func NoWait() Option { return Wait(0) }

// KeepFor is a dedup window: after a success the key stays taken until d after
// it was acquired, for everybody, so that a repeated request is refused although
// the first is done. Success is [Lock.Unlock], or nil returned to [Locker.Do];
// after [Lock.Abort], an error or a panic the key is free at once. Of nested
// locks the outermost counts. [Locker.ForceUnlock] ends a window. At least 1 ms and at
// most 366 days, in whole milliseconds.
func KeepFor(d time.Duration) Option {
	return ofDuration("KeepFor", d, longestWindow, func(s *settings) { s.KeepFor = d.Truncate(time.Millisecond) })
}

// MaxHold bounds how long a lock is kept alive: after d the watchdog stops and
// [Lock.Context] is cancelled with [ErrMaxHold]. The lock is free when it is
// unlocked or when its lease ends, whichever is first, so a handler that obeys
// its context ends in time. Of locks nested by context the outermost counts. At least
// 1 ms and at most 366 days.
func MaxHold(d time.Duration) Option {
	return ofDuration("MaxHold", d, longestWindow, func(s *settings) { s.MaxHold = d })
}

// MaxWaiters bounds how many calls of this Locker wait for one key; one more is
// refused at once with [*BusyError]. The default is no bound. At least 1.
func MaxWaiters(n int) Option {
	return Option{func(s *settings) {
		if n < 1 {
			s.Fail("MaxWaiters(%d): give at least 1, or NoWait", n)
		}
		s.MaxWaiters = &n
	}}
}

// Owner names the owner of a lock, so that the same id re-enters it from another
// goroutine or process. It is for a single call: [New], [Wrap] and middleware
// refuse it, because calls that share an owner do not exclude one another. An id
// is 1 to 128 bytes without control characters and does not begin with
// "latchkey:". Calls that enter go past those that wait: an owner that is never idle keeps the
// others out. It goes neither with [KeepFor], whether the call or [New] has it, nor with a
// Locker of [NewQuorum]; with these the call fails.
func Owner(id string) Option {
	return Option{func(s *settings) {
		switch {
		case s.OfNew:
			s.Fail("Owner is for a single call, not for New: calls that share an owner do not exclude one another")
		case s.CheckOwner("Owner", id, option.MaxOwnerBytes):
			s.Owner = id
		}
	}}
}

// Timeout bounds one request to Redis; after it the outcome counts as
// unknown and is compensated in the background. Option of [New] only. The default
// is 2 s or a third of the lease, whichever is less; at least 1 ms and at most a day. A
// renewal never takes longer than a third of its lease.
func Timeout(d time.Duration) Option {
	return ofNew("Timeout", ofDuration("Timeout", d, longestLease, func(s *settings) { s.Timeout = d }).set)
}

// Logger receives what no caller can be told: lost locks as errors, renewals in
// trouble and releases that failed as warnings; at most one line a second of each
// kind, which says how many were omitted. A [Locker.ForceUnlock] is information.
// Option of [New] only. The default is [slog.Default].
func Logger(logger *slog.Logger) Option {
	return ofNew("Logger", func(s *settings) {
		if logger == nil {
			s.Fail("Logger is nil")
		}
		s.Logger = logger
	})
}

// Replicas makes a lock count only when n replicas have it
// (https://redis.io/docs/latest/commands/wait/), so that a failover to one of
// them keeps it. [Locker.Lock] returns when they have acknowledged it; when fewer
// have within timeout, it is given back and the error is [ErrUnavailable]. A
// renewal prolongs a lock only when they have acknowledged that too: while they
// are missing, held locks end with their leases ([ErrLost]). A release is not
// waited for; a failover may bring a lock back for the rest of its lease.
//
// Which replica a failover promotes, Sentinel and Cluster decide: of equal priority
// the one furthest ahead, as far as they know. Where n is less than all of them it
// may be one that lacks the lock; where n is all, nothing can be locked while one
// is missing.
//
// A replica ends a lock by its own clock: the clocks of master and replicas must agree to
// well below a lease, or a failover may free a lock that is held. With a [redis.Client],
// Sentinel's included, the first lock has them compared in the background, and a
// difference of more than a tenth of the lease given to New is logged as a warning; it
// needs permission for INFO, TIME and PING, and is silent without. Of a cluster they are not compared.
//
// Option of [New] only, off by default. n is at least 1; timeout is at least 1 ms
// in whole milliseconds, less than [Timeout] and less than the client's
// ReadTimeout. New refuses it for a client that is neither a [redis.Client] nor a
// [redis.ClusterClient]; [NewQuorum] refuses it, its members vouch for one another.
func Replicas(n int, timeout time.Duration) Option {
	return ofNew("Replicas", func(s *settings) {
		switch {
		case n < 1:
			s.Fail("Replicas(%d, %v): give at least 1 replica", n, timeout)
		case timeout < time.Millisecond:
			s.Fail("Replicas(%d, %v): give at least 1ms", n, timeout)
		}
		s.Replicas = conn.Replicas{N: n, Within: timeout.Truncate(time.Millisecond)}
	})
}

// ShardedPubSub sends wake-ups by sharded pub/sub
// (https://redis.io/docs/latest/develop/pubsub/#sharded-pubsub), which needs
// Redis 7: in a cluster a release then costs the nodes of its shard something, and
// not all nodes. Without it a wake-up goes to every node of a cluster. All who wait
// for the same locks must agree about it, or they wake one another by polling only;
// a Redisson client of a cluster does so with shardedSubscriptionMode AUTO or ON.
// Option of [New] and [NewQuorum] only.
func ShardedPubSub() Option {
	return ofNew("ShardedPubSub", func(s *settings) { s.Sharded = true })
}

// ofDuration is an option that sets a duration, within its bounds.
func ofDuration(name string, d, longest time.Duration, set func(*settings)) Option {
	return Option{func(s *settings) {
		if d < time.Millisecond || d > longest {
			s.Fail("%s(%v): give at least 1ms and at most %v", name, d, longest)
		}
		set(s)
	}}
}

// ofNew is an option that calls refuse.
func ofNew(name string, set func(*settings)) Option {
	return Option{func(s *settings) {
		if !s.OfNew {
			s.Fail("%s is an option of New, not of a single call", name)
			return
		}
		set(s)
	}}
}
