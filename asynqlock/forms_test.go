//go:build go1.25

package asynqlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

func isOrder(t *asynq.Task) bool { return t.Type() == "order:pay" }

// permits are as many as the payload says.
func permits(t *asynq.Task) (n int) {
	_, _ = fmt.Sscanf(string(t.Payload()), `{"permits":%d`, &n)
	return n
}

func export(n int, opts ...asynq.Option) *asynq.Task {
	return asynq.NewTask("export", fmt.Appendf(nil, `{"permits":%d,"tenantID":"acme"}`, n), opts...)
}

// As many tasks of a tenant as there are permits run at once, in two servers with many
// workers, and all of them are done in the end, without a failure.
func TestPermitsBoundTheTasksOfATenant(t *testing.T) {
	for name, guard := range map[string]func(*core.Locker) asynq.MiddlewareFunc{
		"By": func(l *core.Locker) asynq.MiddlewareFunc {
			core.SetDefault(l)
			return asynqlock.ByPayload("tenantID", core.Permits(3))
		},
		"Config": func(l *core.Locker) asynq.MiddlewareFunc {
			return asynqlock.New(asynqlock.Config{Locker: l, Key: keyfunc.Payload("tenantID"), Permits: permits})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer core.SetDefault(nil)
				b := newBubble(t)
				defer b.close()
				var running, most, done atomic.Int32
				work := does(func(context.Context) error {
					defer running.Add(-1)
					if n := running.Add(1); n > most.Load() {
						most.Store(n)
					}
					time.Sleep(3 * time.Second)
					done.Add(1)
					return nil
				})
				for range 2 {
					b.start(10, guard(b.locker())(work))
				}
				const tasks = 20
				for range tasks {
					b.enqueue(export(3))
				}
				time.Sleep(2 * time.Minute)
				if most.Load() != 3 || done.Load() != tasks || b.refused.Load() == 0 || b.failures() != nil {
					t.Errorf("%d at once, %d of %d done, %d refusals, failures %v", most.Load(), done.Load(), tasks, b.refused.Load(), b.failures())
				}
			})
		})
	}
}

// A task without a permit is refused as one whose key is busy; a number that is none fails it.
func TestNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		two := asynqlock.New(asynqlock.Config{
			Locker: locker, Key: keyfunc.Payload("tenantID"), Permits: permits, Options: []core.Option{core.NoWait()},
		})
		outer := two(does(func(context.Context) error {
			err := two(forbidden(t)).ProcessTask(background, export(1))
			wantRefusal(t, err, core.ErrNoPermit)
			wantNot(t, err, asynq.SkipRetry, asynq.RevokeTask)
			return two(does(nothing)).ProcessTask(background, export(2))
		}))
		if err := outer.ProcessTask(background, export(2)); err != nil {
			t.Error(err)
		}
		for _, n := range []int{0, -1, 10_001} {
			err := two(forbidden(t)).ProcessTask(background, export(n))
			wantFailure(t, err)
			if want := fmt.Sprintf("Permits(%d)", n); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one about %s", err, want)
			}
		}
	})
}

// Config.Weight says how many of the permits a task takes. More than there are, or none, fails it.
func TestWeightOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		guard := asynqlock.New(asynqlock.Config{
			Locker: locker, Key: keyfunc.Payload("tenantID"), Weight: permits, Options: []core.Option{core.Permits(5), core.NoWait()},
		})
		outer := guard(does(func(context.Context) error {
			wantRefusal(t, guard(forbidden(t)).ProcessTask(background, export(3)), core.ErrNoPermit)
			return guard(does(nothing)).ProcessTask(background, export(2))
		}))
		if err := outer.ProcessTask(background, export(3)); err != nil {
			t.Error(err)
		}
		for _, n := range []int{0, 6} {
			err := guard(forbidden(t)).ProcessTask(background, export(n))
			wantFailure(t, err)
			if err == nil || !strings.Contains(err.Error(), "Weight") {
				t.Errorf("error %v, want one about the weight", err)
			}
		}
	})
}

func TestObserversHearOfForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []string
		locker := locktest.New(t, core.Observe(hears(func(e core.Event) {
			if e.Kind == core.EventRefused {
				heard = append(heard, e.Name+" "+e.Form)
			}
		})))
		guard := asynqlock.New(asynqlock.Config{
			Locker: locker, Key: keyfunc.Payload("tenantID"), Permits: permits, Options: []core.Option{core.NoWait()},
		})
		release := hold(t, locker, "tenantID=acme")
		defer release()
		for _, n := range []int{3, 0} {
			_ = guard(forbidden(t)).ProcessTask(background, export(n))
		}
		if want := []string{"tenantID permits", "tenantID exclusive"}; !slices.Equal(heard, want) {
			t.Errorf("heard %q, want %q", heard, want)
		}
	})
}

// Tasks that share go together, and the others alone.
func TestSharedTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := asynqlock.New(asynqlock.Config{
			Locker: locktest.New(t), Key: keyfunc.Payload("order_id"), Shared: isOrder, Options: []core.Option{core.NoWait()},
		})
		alone := asynq.NewTask("order:rebuild", []byte(`{"order_id":"42"}`))
		shared := guard(does(func(ctx context.Context) error {
			if err := guard(does(nothing)).ProcessTask(background, order("42")); err != nil {
				t.Error(err)
			}
			wantRefusal(t, guard(forbidden(t)).ProcessTask(background, alone), core.ErrNotAcquired)
			wantFailure(t, guard(forbidden(t)).ProcessTask(ctx, alone), core.ErrUpgrade)
			return nil
		}))
		if err := shared.ProcessTask(background, order("42")); err != nil {
			t.Error(err)
		}
		if err := guard(does(nothing)).ProcessTask(background, alone); err != nil {
			t.Error(err)
		}
	})
}

// Drop discards a task that finds no permit, unless an earlier run of it has one.
func TestDropWithoutAPermit(t *testing.T) {
	mine, other := taskContext(t, "mine", 25), taskContext(t, "other", 25)
	synctest.Test(t, func(t *testing.T) {
		guard := asynqlock.New(asynqlock.Config{
			Locker: locktest.New(t), Key: keyfunc.Payload("tenantID"), OnBusy: asynqlock.Drop, Options: []core.Option{core.Permits(2)},
		})
		run := func(ctx context.Context, inside func(context.Context) error) {
			if err := guard(does(inside)).ProcessTask(ctx, export(2)); err != nil {
				t.Error(err)
			}
		}
		run(mine, func(context.Context) error {
			run(background, func(context.Context) error {
				err := guard(forbidden(t)).ProcessTask(other, export(2))
				wantRefusal(t, err, asynq.RevokeTask, core.ErrNoPermit)
				err = guard(forbidden(t)).ProcessTask(mine, export(2))
				wantRefusal(t, err, core.ErrNoPermit)
				wantNot(t, err, asynq.RevokeTask)
				return nil
			})
			return nil
		})
	})
}
