//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
)

// A task that waits behind others asks Redis for nothing while a task of its process runs under the lock:
// that was not handed over to it.
func TestTaskThatWaitsAsksForNoHandedOverLock(t *testing.T) {
	contexts := []context.Context{taskContext(t, "first", 25), taskContext(t, "clicked", 25), taskContext(t, "other", 25)}
	for name, isWorker := range map[string]bool{"a task holds it": true, "somebody else holds it": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				defer b.close()
				guard := by(b.locker())
				var all sync.WaitGroup
				if isWorker {
					all.Go(func() {
						work := does(func(context.Context) error { time.Sleep(3 * time.Second); return nil })
						if err := guard(work).ProcessTask(contexts[0], order("42")); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				} else {
					defer hold(t, b.locker(), "order_id=42")()
				}
				all.Go(func() { // the head, which asks as it comes
					wantRefusal(t, guard(forbidden(t)).ProcessTask(contexts[1], order("42")), core.ErrNotAcquired)
				})
				time.Sleep(10 * time.Millisecond)
				before := b.server.CommandCount()
				short, cancel := context.WithTimeout(contexts[2], 300*time.Millisecond) // it waits 100 ms
				defer cancel()
				wantRefusal(t, guard(forbidden(t)).ProcessTask(short, order("42")), core.ErrNotAcquired)
				if asked := b.server.CommandCount() - before; (asked == 0) != isWorker {
					t.Errorf("it has asked %d times", asked)
				}
				all.Wait()
			})
		})
	}
}

// A second run of a task whose first run has the lock that was handed over, and fails, gets it: at once on its
// last attempt, and otherwise when it comes again.
func TestSecondRunResumesWhatTheFirstOneHasParkedAgain(t *testing.T) {
	failure := errors.New("no money")
	for name, maxRetry := range map[string]int{"usually": 25, "last attempt": 0} {
		clicked := taskContext(t, "clicked", maxRetry)
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				defer b.close()
				guard := by(b.locker())
				click(t, b.locker(), b.handsOver(time.Hour, order("42"), asynq.TaskID("clicked")))
				var second sync.WaitGroup
				runs := 0
				again := does(func(context.Context) error { runs++; return nil })
				err := guard(does(func(context.Context) error {
					second.Go(func() {
						err := guard(again).ProcessTask(clicked, order("42"))
						if maxRetry > 0 {
							wantRefusal(t, err, core.ErrNotAcquired)
							err = guard(again).ProcessTask(clicked, order("42"))
						}
						if err != nil {
							t.Error(err)
						}
					})
					time.Sleep(100 * time.Millisecond)
					return failure
				})).ProcessTask(clicked, order("42"))
				wantErr(t, err, failure)
				second.Wait()
				if runs != 1 {
					t.Errorf("%d second runs", runs)
				}
			})
		})
	}
}
