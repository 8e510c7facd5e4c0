package core

import (
	"slices"

	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

const mostPermits = 10_000 // a command of Redis looks through all holders

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
		return badOption("Permits(%d): give 1 to %d", n, mostPermits)
	}
	return inForm("Permits", store.Permits(n), nil)
}

// Weight has a call with [Permits] take w of the n permits, where others take one: w is 1 to n. The
// order of arrival counts for it as for the others: a call whose permits are not all free is waited
// for by those behind it, so it is not overtaken for ever. A context that has its permits enters the
// lock without more, whatever the Weight.
//
// Each permit but the first costs Redis one more write when the lock is taken, and when it is
// released. Weight is for a call or middleware, not for [New]. Processes of a version before it must
// not lock a key beside calls that use it: they would grant more permits than there are.
func Weight(w int) Option {
	if w < 1 || w > mostPermits {
		return badOption("Weight(%d): give 1 to %d", w, mostPermits)
	}
	return Option{set: func(s *settings) {
		if s.Scope == option.OfLocker {
			s.Fail("Weight is for a call or middleware, not for New")
		}
		s.Form = s.Form.Weighing(w)
	}}
}

// PermitsEach is [Permits] for the locks of several keys, with an n for each: for [Locker.LockAll],
// [Locker.DoAll], [WrapAll] and middleware with several keys, in the order in which these are given. So a
// limit for each tenant goes below one for all:
//
//	locker.LockAll(ctx, []string{"tenant=" + tenant, "all"}, core.PermitsEach(3, 100))
//
// The call fails when it has more keys or fewer, or one key twice with different n. [Weight] counts for each
// key, and is the least n at most. Otherwise PermitsEach is as Permits, with which it cannot be combined.
func PermitsEach(n ...int) Option {
	if len(n) == 0 || slices.Min(n) < 1 || slices.Max(n) > mostPermits {
		return badOption("PermitsEach(%v): give 1 to %d for each key", n, mostPermits)
	}
	return inForm("PermitsEach", store.Permits(slices.Min(n)), slices.Clone(n))
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
