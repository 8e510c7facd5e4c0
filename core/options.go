package core

import (
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

const ofCall, ofLock, ofTryLock = option.OfCall, option.OfLock, option.OfTryLock

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

const (
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
		return badOption("Wait(%v): give 0, or at least 1ms", d)
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
// free at once. Of nested locks the outermost counts. [Locker.ForceUnlock] ends a window. For [Once] it
// says for how long the result is kept. 1 ms to 366 days, in whole milliseconds.
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
	if s.Scope == ofTryLock && s.Waits() {
		s.Fail("%s has no effect in TryLock and Resume, which never wait: leave it out, or call Lock", name)
	}
}
