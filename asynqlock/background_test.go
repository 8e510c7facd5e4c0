//go:build go1.25

package asynqlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// slowRelease is an Observer that holds up whoever has released a lock.
type slowRelease struct{}

// slow is shorter than a Locker of locktest waits for what is held in the end.
const slow = time.Second / 2

func (slowRelease) Observe(ctx context.Context, e core.Event) context.Context {
	if e.Kind == core.EventReleased {
		time.Sleep(slow)
	}
	return ctx
}

// A task that would be dropped for an earlier one must not be dropped for one that is done.
func TestBackgroundRelease(t *testing.T) {
	for name, c := range map[string]struct {
		onBusy asynqlock.BusyPolicy
		opts   []core.Option
		took   time.Duration
	}{
		"without it": {took: slow},
		"with it":    {opts: []core.Option{core.BackgroundRelease()}},
		"Drop":       {asynqlock.Drop, []core.Option{core.BackgroundRelease()}, slow},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				guard := asynqlock.New(asynqlock.Config{
					Locker: locktest.New(t, core.Observe(slowRelease{})), Key: keyfunc.Payload("orderID"), OnBusy: c.onBusy, Options: c.opts,
				})
				started := time.Now()
				err := guard(does(func(context.Context) error { return nil })).ProcessTask(t.Context(), asynq.NewTask("pay", []byte(`{"orderID":42}`)))
				if took := time.Since(started); err != nil || took != c.took {
					t.Errorf("%v after %v, want %v", err, took, c.took)
				}
			})
		})
	}
}
