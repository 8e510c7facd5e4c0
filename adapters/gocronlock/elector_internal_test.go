//go:build go1.25

package gocronlock

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

// After a pause of the process a context has not noticed yet that the lease is over: the clock decides.
func TestIsLeaderComparesTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t, core.Logger(slog.New(slog.DiscardHandler)))
		lock, err := locker.Lock(t.Context(), "scheduler", core.FixedLease(5*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		var e Elector
		e.term.Store(&term{context.WithoutCancel(lock.Context()), locker, lock})
		time.Sleep(4 * time.Second)
		if err := e.IsLeader(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := e.IsLeader(t.Context()); err != ErrNotLeader {
			t.Error(err)
		}
	})
}
