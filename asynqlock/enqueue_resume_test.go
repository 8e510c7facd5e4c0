//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// A worker whose ticket has expired competes like a stranger, as does one whose ticket is used up.
func TestTicketThatIsOver(t *testing.T) {
	t.Run("expired", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t)
			defer b.close()
			var d diary
			click(t, b.locker(), b.handsOver(10*time.Second, order("42"), asynq.TaskID("clicked")))
			time.Sleep(9 * time.Second)
			if !isLocked(t, b.locker(), "order_id=42") {
				t.Error("it is free too early")
			}
			time.Sleep(2 * time.Second)
			release := hold(t, b.locker(), "order_id=42")
			b.start(2, by(b.locker())(d.handler("ran")))
			time.Sleep(30 * time.Second)
			if d.all() != "" || b.refused.Load() == 0 || len(b.failures()) > 0 {
				t.Errorf("%q, refused %d times, %v", d.all(), b.refused.Load(), b.failures())
			}
			release()
			time.Sleep(10 * time.Second)
			if d.all() != "ran clicked" {
				t.Errorf("%q", d.all())
			}
		})
	})
	t.Run("used up", func(t *testing.T) {
		ctx := taskContext(t, "clicked", 25)
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t)
			defer b.close()
			locker := b.locker()
			click(t, b.locker(), b.handsOver(time.Hour, order("42"), asynq.TaskID("clicked")))
			runs(t, by(locker), ctx, func(inner context.Context) {
				again := context.WithoutCancel(core.Detach(inner))
				wantRefusal(t, by(locker, core.NoWait())(forbidden(t)).ProcessTask(again, order("42")), core.ErrNotAcquired)
			})
			release := hold(t, b.locker(), "order_id=42")
			defer release()
			wantRefusal(t, by(locker)(forbidden(t)).ProcessTask(ctx, order("42")), core.ErrNotAcquired)
		})
	})
}

// A task is not refused because others wait for its lock, whatever the policy.
func TestTaskThatResumesIsNotRefused(t *testing.T) {
	first, clicked := taskContext(t, "first", 25), taskContext(t, "clicked", 25)
	for name, c := range map[string]struct {
		config asynqlock.Config
		ctx    context.Context
		last   bool
	}{
		"usually":         {ctx: clicked},
		"last attempt":    {ctx: taskContext(t, "clicked", 0), last: true},
		"NoWait":          {ctx: clicked, config: asynqlock.Config{Options: []core.Option{core.NoWait()}}},
		"no more waiters": {ctx: clicked, config: asynqlock.Config{Options: []core.Option{core.MaxWaiters(1)}}},
		"Drop":            {ctx: clicked, config: asynqlock.Config{OnBusy: asynqlock.Drop}},
		"Drop, waits":     {ctx: clicked, config: asynqlock.Config{OnBusy: asynqlock.Drop, Options: []core.Option{core.Wait(time.Second)}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				defer b.close()
				c.config.Locker, c.config.Key = b.locker(), keyfunc.Payload("order_id")
				guard := asynqlock.New(c.config)
				var others sync.WaitGroup
				ended := make(chan struct{})
				click(t, b.locker(), func(lock *core.Lock) error {
					for range 6 {
						others.Go(func() {
							for {
								select {
								case <-ended:
									return
								default:
								}
								wantErr(t, guard(forbidden(t)).ProcessTask(first, order("42")), core.ErrNotAcquired)
								time.Sleep(50 * time.Millisecond)
							}
						})
					}
					time.Sleep(1500 * time.Millisecond)
					return b.handsOver(time.Hour, order("42"), asynq.TaskID("clicked"))(lock)
				})
				failure := errors.New("no money")
				for i := range 10 {
					time.Sleep(130 * time.Millisecond)
					began, took := time.Now(), time.Hour
					err := guard(does(func(context.Context) error {
						took = time.Since(began)
						if i == 9 || c.last { // with this run the lock may end
							close(ended)
							others.Wait()
						}
						return failure
					})).ProcessTask(c.ctx, order("42"))
					if err != failure || took > 10*time.Millisecond {
						t.Errorf("after %v: %v", took, err)
					}
					if c.last {
						break
					}
				}
			})
		})
	}
}

// Nobody is at work while a lock is parked: a task is dropped once somebody is.
func TestDropOfATaskThatFindsTheLockParked(t *testing.T) {
	other, clicked := taskContext(t, "other", 25), taskContext(t, "clicked", 25)
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		drop := withPolicy(b.locker(), asynqlock.Drop)
		click(t, b.locker(), b.handsOver(time.Hour, order("42"), asynq.TaskID("clicked")))
		err := drop(forbidden(t)).ProcessTask(other, order("42"))
		wantRefusal(t, err, core.ErrNotAcquired)
		wantNot(t, err, asynq.RevokeTask)
		runs(t, drop, clicked, func(context.Context) {
			wantRefusal(t, drop(forbidden(t)).ProcessTask(other, order("42")), asynq.RevokeTask)
			again := drop(forbidden(t)).ProcessTask(clicked, order("42"))
			wantRefusal(t, again, core.ErrNotAcquired)
			wantNot(t, again, asynq.RevokeTask)
		})
	})
}

// A task can hand its lock over to the next one, which is no loss of its own.
func TestTaskEnqueuesTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		var d diary
		b.start(4, by(b.locker())(does(func(ctx context.Context) error {
			id, _ := asynq.GetTaskID(ctx)
			d.add(id)
			if id != "first" {
				return nil
			}
			for _, other := range []string{"a", "b", "c"} {
				b.enqueue(order("42"), asynq.TaskID(other))
			}
			time.Sleep(2 * time.Second)
			lock, _ := core.FromContext(ctx)
			_, err := asynqlock.Enqueue(ctx, b.queue, lock, order("42"), time.Minute, asynq.TaskID("second"))
			wantErr(t, context.Cause(ctx), core.ErrHandedOver)
			return err
		})))
		b.enqueue(order("42"), asynq.TaskID("first"))
		time.Sleep(time.Minute)
		if !strings.HasPrefix(d.all(), "first, second, ") || len(d.entries) != 5 || len(b.failures()) > 0 {
			t.Errorf("%s, failures: %v", d.all(), b.failures())
		}
	})
}
