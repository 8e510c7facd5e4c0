package core

import (
	"errors"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Shared has the lock go to all who share it at once: readers beside one another, while calls
// without it have the lock alone. Calls are served in order of arrival: one that shares waits
// behind one that waits to be alone, and neighbours that share get the lock together.
//
// Each has a lease, a fencing token and a watchdog of its own, and learns of its own loss; one
// that died holds others up for its lease. A context that shares a lock enters it once more at
// once, past those who wait; one that has it alone enters its own lock. To take it alone while
// one shares it would be to wait for oneself: [ErrUpgrade].
//
// It is for a call or middleware, not for [New], and goes neither with [Permits], nor with
// [KeepFor], nor with a Locker of [NewQuorum].
func Shared() Option {
	return Option{func(s *settings) { setForm(s, "Shared", store.Shared) }}
}

// mostPermits bounds what one command of Redis has to look through.
const mostPermits = 10_000

// Permits has the lock go to up to n holders at once: of those who come with the same key, in
// order of arrival, also where others wait that share it or want it alone. n is the caller's
// own: a call is admitted while fewer than n hold the lock, whatever the others' n is. Calls
// without Permits exclude all that have one.
//
// Each holder has a lease, a fencing token and a watchdog of its own: the permit of one that
// died is free after its lease. A context that has a permit enters the lock once more without
// another permit; to take it alone, or share it, would be to wait for oneself: [ErrUpgrade].
// A call that gets none fails with [ErrNoPermit], which is [ErrNotAcquired] as well.
//
// n is from 1 to 10,000. It is for a call or middleware, not for [New], and goes neither with
// [Shared], nor with [KeepFor], nor with a Locker of [NewQuorum].
func Permits(n int) Option {
	return Option{func(s *settings) {
		if n < 1 || n > mostPermits {
			s.Fail("Permits(%d): give 1 to %d", n, mostPermits)
			return
		}
		setForm(s, "Permits", store.Permits(n))
	}}
}

func setForm(s *settings, option string, form store.Form) {
	if s.OfNew {
		s.Fail("%s is for a call or middleware, not for New: no call could have a lock alone", option)
		return
	}
	if s.Form != store.Exclusive && !s.Form.Includes(form) {
		s.Fail("%s: Permits and Shared do not go together: leave one of them out", option)
		return
	}
	s.Form = form
}

var errNoPermit = errors.Join(ErrNotAcquired, ErrNoPermit)

// ofForm has the refusal of a call with Permits say so. The refusal is that of no other call.
func ofForm(form store.Form, err error) error {
	if err == nil || form.Permits() == 0 {
		return err
	}
	switch e := err.(type) {
	case *BusyError:
		e.permits = true
	case *LockError:
		if e.kind == ErrNotAcquired {
			e.kind = errNoPermit
		}
	}
	return err
}
