//go:build go1.25

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
				var g guard
				g.running.Store("k", lock.Context())
				if g.mayBeParked("k") || !g.mayBeParked("other") {
					t.Error("the lock of the task that runs is not parked, any other may be")
				}
				if err := end(l, lock, func() {
					if !g.mayBeParked("k") {
						t.Error("it may be parked for the next task")
					}
				}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
