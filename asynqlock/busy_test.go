//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestBusyKeyIsWaitedFor(t *testing.T) {
	first := taskContext(t, "first", 25)
	last := taskContext(t, "last", 0)
	wait := func(d time.Duration) []core.Option { return []core.Option{core.Wait(d)} }
	for name, c := range map[string]struct {
		ctx      context.Context
		locker   []core.Option
		options  []core.Option
		lastWait time.Duration
		policy   asynqlock.BusyPolicy
		want     time.Duration
	}{
		"usually":                   {ctx: first, want: time.Second},
		"outside of a server":       {ctx: background, want: time.Second},
		"NoWait":                    {ctx: first, options: []core.Option{core.NoWait()}},
		"as the options say":        {ctx: first, options: wait(2 * time.Second), want: 2 * time.Second},
		"as the Locker says":        {ctx: first, locker: wait(2 * time.Second), want: 2 * time.Second},
		"options before Locker":     {ctx: first, locker: wait(time.Hour), options: wait(time.Minute), want: time.Minute},
		"last attempt":              {ctx: last, want: time.Minute},
		"last attempt, LastWait":    {ctx: last, lastWait: time.Second, want: time.Second},
		"not the last, LastWait":    {ctx: first, lastWait: time.Minute, want: time.Second},
		"Drop":                      {ctx: first, policy: asynqlock.Drop},
		"last attempt, options":     {ctx: last, options: wait(time.Second), want: time.Second},
		"last attempt, Locker":      {ctx: last, locker: wait(time.Second), want: time.Second},
		"last attempt, NoWait":      {ctx: last, options: []core.Option{core.NoWait()}},
		"last attempt, Drop":        {ctx: last, policy: asynqlock.Drop},
		"Drop, as the options say":  {ctx: first, policy: asynqlock.Drop, options: wait(time.Second), want: time.Second},
		"Drop, last, options again": {ctx: last, policy: asynqlock.Drop, options: wait(time.Second), want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locker := locktest.New(t, c.locker...)
				release := hold(t, locker, "order_id=42")
				guard := asynqlock.New(asynqlock.Config{
					Locker:   locker,
					Key:      keyfunc.Payload("order_id"),
					Options:  c.options,
					LastWait: c.lastWait,
					OnBusy:   c.policy,
				})
				began := time.Now()
				err := guard(forbidden(t)).ProcessTask(c.ctx, order("42"))
				if waited := time.Since(began); waited != c.want {
					t.Errorf("waited %v, want %v", waited, c.want)
				}
				wantRefusal(t, err, core.ErrNotAcquired)
				var busy *core.BusyError
				if !errors.As(err, &busy) {
					t.Error("there is no *core.BusyError")
				}
				if c.want == 0 {
					release()
					return
				}
				// It gets the lock when that is free in time.
				time.AfterFunc(c.want/2, release)
				began = time.Now()
				if err := guard(does(nothing)).ProcessTask(c.ctx, order("42")); err != nil {
					t.Error(err)
				}
				if waited := time.Since(began); waited < c.want/2 || waited > c.want*3/4 {
					t.Errorf("waited %v for a lock that was free after %v", waited, c.want/2)
				}
			})
		})
	}
}

// A task whose context has ended has failed: nothing may be busy.
func TestContextEnded(t *testing.T) {
	for _, policy := range []asynqlock.BusyPolicy{asynqlock.Retry, asynqlock.Drop} {
		synctest.Test(t, func(t *testing.T) {
			locker := locktest.New(t)
			guard := asynqlock.New(asynqlock.Config{
				Locker:  locker,
				Key:     keyfunc.Payload("order_id"),
				Options: []core.Option{core.Wait(time.Hour)},
				OnBusy:  policy,
			})
			cancelled, cancel := context.WithCancel(background)
			cancel()
			err := guard(forbidden(t)).ProcessTask(cancelled, order("42"))
			wantFailure(t, err, context.Canceled)
			wantNot(t, err, asynq.RevokeTask, asynq.SkipRetry)

			release := hold(t, locker, "order_id=42")
			defer release()
			waiting, cancel := context.WithCancel(background)
			time.AfterFunc(time.Minute, cancel)
			err = guard(forbidden(t)).ProcessTask(waiting, order("42"))
			wantFailure(t, err, context.Canceled)
			wantNot(t, err, asynq.RevokeTask, asynq.SkipRetry)
		})
	}
}

// A wait ends before the task's deadline, or asynq would count a failure.
func TestWaitEndsBeforeTheDeadline(t *testing.T) {
	first, last := taskContext(t, "first", 25), taskContext(t, "last", 0)
	const long = "its deadline is near"
	wait := func(d time.Duration) []core.Option { return []core.Option{core.Wait(d)} }
	for name, c := range map[string]struct {
		ctx             context.Context
		deadline        time.Duration
		locker, options []core.Option
		policy          asynqlock.BusyPolicy
		want            time.Duration
		says            string
	}{
		"a tenth before": {ctx: first, deadline: time.Minute, options: wait(time.Hour), want: 54 * time.Second, says: long},
		"the Locker's":   {ctx: first, deadline: time.Minute, locker: wait(time.Hour), want: 54 * time.Second, says: long},
		"Drop": {
			ctx: first, deadline: time.Minute, options: wait(time.Hour), policy: asynqlock.Drop,
			want: 54 * time.Second, says: long,
		},
		"at least 100ms": {
			ctx: first, deadline: 500 * time.Millisecond, options: wait(time.Hour),
			want: 400 * time.Millisecond, says: long,
		},
		"no time to wait": {ctx: first, deadline: 50 * time.Millisecond, options: wait(time.Hour), says: long},
		"a shorter wait counts": {
			ctx: first, deadline: time.Minute, options: wait(10 * time.Second),
			want: 10 * time.Second, says: "the wait of 10s is over",
		},
		"NoWait counts":           {ctx: first, deadline: time.Minute, options: wait(0), says: "somebody else holds it"},
		"usually":                 {ctx: first, deadline: time.Minute, want: time.Second, says: "the wait of 1s is over"},
		"usually, half of it":     {ctx: first, deadline: time.Second, want: 450 * time.Millisecond, says: "the wait of 450ms is over"},
		"on the last attempt":     {ctx: last, deadline: 10 * time.Second, want: 9 * time.Second, says: long},
		"last attempt, time left": {ctx: last, deadline: time.Hour, want: time.Minute, says: "the wait of 1m0s is over"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locker := locktest.New(t, c.locker...)
				release := hold(t, locker, "order_id=42")
				guard := asynqlock.New(asynqlock.Config{
					Locker: locker, Key: keyfunc.Payload("order_id"), Options: c.options, OnBusy: c.policy,
				})
				began := time.Now()
				ctx, cancel := context.WithTimeout(c.ctx, c.deadline)
				defer cancel()
				err := guard(forbidden(t)).ProcessTask(ctx, order("42"))
				if waited := time.Since(began); waited != c.want {
					t.Errorf("waited %v, want %v", waited, c.want)
				}
				wantRefusal(t, err, core.ErrNotAcquired)
				wantNot(t, err, context.DeadlineExceeded)
				if err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %q, want %q in it", err, c.says)
				}
				// What is left is the handler's.
				release()
				ctx, cancel = context.WithTimeout(c.ctx, c.deadline)
				defer cancel()
				want, _ := ctx.Deadline()
				err = guard(does(func(ctx context.Context) error {
					if got, ok := ctx.Deadline(); !ok || !got.Equal(want) {
						t.Errorf("the handler's deadline is %v, want %v", got, want)
					}
					return nil
				})).ProcessTask(ctx, order("42"))
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestDrop(t *testing.T) {
	ctx, other := taskContext(t, "my-id", 25), taskContext(t, "other-id", 25)
	nested := func(locker *core.Locker, policy asynqlock.BusyPolicy) asynq.MiddlewareFunc {
		return asynqlock.New(asynqlock.Config{
			Locker:  locker,
			Key:     keyfunc.Payload("order_id"),
			OnBusy:  policy,
			Options: []core.Option{core.KeepFor(time.Minute)},
		})
	}
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		drop := nested(locker, asynqlock.Drop)
		dropped := func(ctx context.Context, why string) {
			t.Helper()
			if err := drop(forbidden(t)).ProcessTask(ctx, order("42")); !errors.Is(err, asynq.RevokeTask) {
				t.Errorf("%s: error is %v, want RevokeTask", why, err)
			} else {
				wantRefusal(t, err, core.ErrNotAcquired)
			}
		}
		kept := func(ctx context.Context, why string) {
			t.Helper()
			err := drop(forbidden(t)).ProcessTask(ctx, order("42"))
			if errors.Is(err, asynq.RevokeTask) {
				t.Errorf("%s: error is %v, want no RevokeTask", why, err)
			}
			wantRefusal(t, err, core.ErrNotAcquired)
		}

		release := hold(t, locker, "order_id=42")
		dropped(ctx, "somebody else holds the key")
		dropped(background, "somebody else holds the key, outside of a server")
		release()
		err := drop(does(func(ctx context.Context) error {
			dropped(other, "another task runs")
			kept(context.WithoutCancel(core.Detach(ctx)), "an earlier run of the same task runs still")
			// A second middleware for the same key re-enters, whatever its policy.
			for _, policy := range []asynqlock.BusyPolicy{asynqlock.Retry, asynqlock.Drop} {
				if err := nested(locker, policy)(does(nothing)).ProcessTask(ctx, order("42")); err != nil {
					t.Errorf("nested: %v", err)
				}
			}
			return nil
		})).ProcessTask(ctx, order("42"))
		if err != nil {
			t.Fatal(err)
		}
		dropped(other, "the dedup window")
		dropped(ctx, "the dedup window of the same task: its work is done")
	})
}
