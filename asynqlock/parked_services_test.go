//go:build go1.25

package asynqlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/asynqlock"
)

// Two services whose tasks are in databases of their own lock the same key: each starts its own
// tasks, and leaves those of the other to it.
func TestParkedTasksOfTwoServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newShop(t, 10*time.Millisecond), newShop(t, 10*time.Millisecond)
		defer a.close()
		defer b.close()
		for _, s := range []*shop{a, b} {
			s.start(10, asynqlock.New(s.config(a.locker()))(s))
		}
		a.enqueues(150, "42")
		b.enqueues(150, "42")
		a.wantDone(150, 15*time.Second)
		b.wantDone(150, 5*time.Second)
	})
}
