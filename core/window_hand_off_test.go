package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A window that the outermost hold has earned stays, whoever unlocks last, and whoever
// waits meanwhile: passing the lock on must not give the key away.
// Taken out, the call that waits does the work a second time.
func TestEarnedWindowIsNotHandedOff(t *testing.T) {
	keep := core.KeepFor(2 * time.Minute)
	for name, work := range map[string]func(t *testing.T, here, there *core.Locker) (outer, last *core.Lock){
		"two calls of one owner": func(t *testing.T, here, _ *core.Locker) (outer, last *core.Lock) {
			outer = take(t, background, here, "k", keep)
			return outer, take(t, background, here, "k", core.Owner(outer.ShareOwner()))
		},
		"one owner in two processes": func(t *testing.T, here, there *core.Locker) (outer, last *core.Lock) {
			outer = take(t, background, there, "k", keep)
			return outer, take(t, background, here, "k", core.Owner(outer.ShareOwner()))
		},
		"nested by the context": func(t *testing.T, here, _ *core.Locker) (outer, last *core.Lock) {
			outer = take(t, background, here, "k", keep)
			return outer, take(t, context.WithoutCancel(outer.Context()), here, "k")
		},
		"nested by the context in another Locker": func(t *testing.T, here, there *core.Locker) (outer, last *core.Lock) {
			outer = take(t, background, there, "k", keep)
			return outer, take(t, context.WithoutCancel(outer.Context()), here, "k")
		},
	} {
		for what, finish := range map[string]func(*core.Lock, context.Context) error{
			"succeeds": (*core.Lock).Unlock,
			"fails":    (*core.Lock).Abort,
		} {
			t.Run(name+", the last "+what, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					here, there := s.locker(), s.locker()
					outer, last := work(t, here, there)
					waiting := start(background, here, "k")
					unlock(t, outer)
					if err := finish(last, background); err != nil {
						t.Error(err)
					}
					waits(t, waiting)
					inWindow(t, there, "k", 2*time.Minute)
					o := <-waiting
					wantTime(t, "the next had it", o.took, 2*time.Minute, 2*time.Minute+prompt)
					unlock(t, o.lock)
				})
			})
		}
	}
}
