package core_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A window that is earned lasts, also when another hold of the same owner is never
// released: its process has died.
// Taken out, the key is free when the lease of the dead one ends, and the work is done
// twice.
func TestEarnedWindowOutlivesAnOrphanedHold(t *testing.T) {
	keep := core.KeepFor(time.Hour)
	for name, work := range map[string]func(t *testing.T, s *embedded, here, there *core.Locker) *core.Lock{
		"one owner in two processes": func(t *testing.T, _ *embedded, here, there *core.Locker) *core.Lock {
			outer := take(t, background, there, "k", keep)
			take(t, background, here, "k", core.Owner(outer.ShareOwner()))
			return outer
		},
		"nested in another Locker": func(t *testing.T, _ *embedded, here, there *core.Locker) *core.Lock {
			outer := take(t, background, there, "k", keep)
			take(t, outer.Context(), here, "k")
			return outer
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				here, there, third := s.locker(), s.locker(), s.locker()
				outer := work(t, s, here, there)
				time.Sleep(time.Minute)
				unlock(t, outer)                // confirmed
				time.Sleep(20 * time.Second)    // the other one renews
				s.failAll(hang, renew, release) // and dies
				time.Sleep(10 * time.Minute)
				if k, err := third.TryLock(background, "k"); err == nil {
					t.Error("somebody does the work again within the window")
					_ = k.Unlock(background)
				}
				s.heal()
				time.Sleep(49 * time.Minute)
				unlock(t, take(t, background, third, "k"))
			})
		})
	}
}
