//go:build go1.25

package waitqueue_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// A head hears of a failure at once, also when it asked just then, and whoever is head later, if it has waited since before.
func TestAFailureIsForWhoHasWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b := open(t, &q, "a"), join(t, &q, "b")
		boom := errors.New("boom")
		heard := func(who string, w *waiter, want error) {
			t.Helper()
			if _, err := w.Failure(); err != want {
				t.Errorf("%s heard %v", who, err)
			}
		}
		forA, forB := wait(a, time.Hour), wait(b, time.Hour)
		wantWaiting(t, "a", forA)
		time.Sleep(time.Second)
		heard("a", a, nil)
		q.Fail("lock", boom)
		q.Fail("another", boom)
		want(t, "a", forA, end{reason: waitqueue.AskRedis, took: time.Second})
		heard("a", a, boom)
		time.Sleep(time.Second)
		c := join(t, &q, "c")
		forC := wait(c, time.Hour)
		a.Leave()
		want(t, "b", forB, end{reason: waitqueue.AskRedis, took: 2 * time.Second})
		heard("b", b, boom)
		heard("c, which came later,", c, nil)
		q.Fail("lock", boom) // while b asks
		want(t, "b", wait(b, time.Hour), end{reason: waitqueue.AskRedis})
		b.Leave()
		want(t, "c", forC, end{reason: waitqueue.AskRedis})
		c.Leave()
	})
}
