package asynqlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/locktest"
)

// The next task may ask for the lock before the one that hands it over knows that it was enqueued.
func TestRunningTaskDoesNotHoldWhatItHandsOverOrHasLost(t *testing.T) {
	for name, end := range map[string]func(*core.Locker, *core.Lock, func()) error{
		"handed over": func(_ *core.Locker, lock *core.Lock, look func()) error {
			return adapter.Handover(context.Background(), lock, "next", time.Minute, func() error { look(); return nil })
		},
		"lost": func(l *core.Locker, lock *core.Lock, look func()) error {
			_, err := l.ForceUnlock(context.Background(), "k")
			<-lock.Context().Done()
			look()
			return err
		},
		"unlocked": func(_ *core.Locker, lock *core.Lock, look func()) error {
			err := lock.Unlock(context.Background())
			look()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := locktest.New(t)
				lock, err := l.Lock(context.Background(), "k")
				if err != nil {
					t.Fatal(err)
				}
				var r running
				r.begin(lock.Context(), []string{"k"})
				if !r.isHeld("k") || r.isHeld("other") {
					t.Error("the key of the task that runs is held, and no other one")
				}
				if err := end(l, lock, func() {
					if r.isHeld("k") {
						t.Error("it is held still")
					}
				}); err != nil {
					t.Error(err)
				}
				r.end([]string{"k"})
			})
		})
	}
}
