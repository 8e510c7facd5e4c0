package core

import (
	"fmt"
	"slices"

	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

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

// checkKeys returns an error unless PermitsEach, if it was given, has the permits of so many keys.
func (s *settings) checkKeys(n int) error {
	if each := s.PermitsEach; each != nil && len(each) != n {
		return fmt.Errorf("core: PermitsEach has the permits of %d keys, and the call has %d", len(each), n)
	}
	return nil
}

// ofKey are the settings of the call for the lock of its i-th key.
func (s *settings) ofKey(i int) *settings {
	if s.PermitsEach == nil {
		return s
	}
	own := *s
	own.Form = store.Permits(s.PermitsEach[i]).Weighing(s.Form.Weight())
	return &own
}
