//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// refused returns the error of a task whose key is busy.
func refused(tb testing.TB, opts ...core.Option) error {
	locker := locktest.New(tb)
	release := hold(tb, locker, "order_id=42", opts...)
	err := by(locker)(forbidden(tb)).ProcessTask(background, order("42"))
	release()
	return err
}

func TestIsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		contention := refused(t)
		other := errors.New("no money")
		harmless := errors.New("harmless")
		next := func(err error) bool { return err != nil && !errors.Is(err, harmless) }
		for _, c := range []struct {
			name       string
			err        error
			alone, via bool
		}{
			{"contention", contention, false, false},
			{"wrapped", fmt.Errorf("middleware: %w", contention), false, false},
			{"joined", errors.Join(other, contention), false, false},
			{"nil", nil, false, false},
			{"another", other, true, true},
			{"another that is harmless", harmless, true, false},
			{"core's, of a lock of the handler's own", &core.BusyError{Key: "42"}, true, true},
			{"core's, other kind", core.ErrNotAcquired, true, true},
			{"deadline", context.DeadlineExceeded, true, true},
		} {
			if got := asynqlock.IsFailure(nil)(c.err); got != c.alone {
				t.Errorf("%s: IsFailure(nil) is %v", c.name, got)
			}
			if got := asynqlock.IsFailure(next)(c.err); got != c.via {
				t.Errorf("%s: IsFailure(next) is %v", c.name, got)
			}
		}
	})
}

// A lock that the handler takes itself is the handler's business.
func TestHandlersOwnContentionIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		release := hold(t, locker, "account:7")
		defer release()
		err := by(locker)(does(func(ctx context.Context) error {
			return locker.Do(ctx, "account:7", nothing, core.NoWait())
		})).ProcessTask(background, order("42"))
		wantFailure(t, err, core.ErrNotAcquired)
		want := 17 * time.Minute
		next := func(int, error, *asynq.Task) time.Duration { return want }
		if got := asynqlock.RetryDelay(next)(0, err, order("42")); got != want {
			t.Errorf("delay %v, want that of next", got)
		}
	})
}

// Of two middlewares the inner one may refuse: the task has not run either.
func TestInnerMiddlewareRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		release := hold(t, locker, `taskType=order\:pay`)
		defer release()
		inner := asynqlock.New(asynqlock.Config{Locker: locker, Key: keyfunc.TaskType()})
		err := by(locker)(inner(forbidden(t))).ProcessTask(background, order("42"))
		wantRefusal(t, err, core.ErrNotAcquired)
		if isLocked(t, locker, "order_id=42") {
			t.Error("the outer lock is still held")
		}
	})
}

func TestRetryDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		contention := refused(t)
		task := order("42")
		var passed error
		delay := asynqlock.RetryDelay(func(n int, err error, got *asynq.Task) time.Duration {
			if n != 3 || got != task {
				t.Errorf("next got %d and %v", n, got)
			}
			passed = err
			return time.Hour
		})

		for _, err := range []error{
			contention,
			fmt.Errorf("middleware: %w", contention),
			errors.Join(&core.BusyError{RetryAfter: time.Hour}, contention), // not the one that counts
		} {
			if d := delay(3, err, task); d < 0 || d >= time.Second {
				t.Errorf("delay %v, want less than a second", d)
			}
		}

		failure := errors.New("no money")
		if got := delay(3, failure, task); got != time.Hour || passed != failure {
			t.Errorf("delay %v, error %v; want those of next", got, passed)
		}
		if got := asynqlock.RetryDelay(nil)(0, failure, task); got < 15*time.Second || got > 45*time.Second {
			t.Errorf("delay %v, want one of asynq's own", got)
		}
	})
}

// asynq drops fractions of a second: a task that a window stopped must not come
// back in it, nor much later.
func TestRetryDelayAfterAWindow(t *testing.T) {
	for _, offset := range []time.Duration{0, time.Millisecond, 400 * time.Millisecond, 999 * time.Millisecond} {
		for _, window := range []time.Duration{1500 * time.Millisecond, 10 * time.Second, 10*time.Minute + 300*time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(offset)
				locker := locktest.New(t)
				guard := by(locker, core.KeepFor(window), core.NoWait())
				if err := guard(does(nothing)).ProcessTask(background, order("42")); err != nil {
					t.Fatal(err)
				}
				end := time.Now().Add(window)
				time.Sleep(window / 10)
				err := guard(forbidden(t)).ProcessTask(background, order("42"))
				wantRefusal(t, err)
				d := asynqlock.RetryDelay(nil)(0, err, order("42"))
				at := time.Unix(time.Now().Add(d).Unix(), 0)
				if after := at.Sub(end); after < 0 || after > time.Second+10*time.Millisecond {
					t.Errorf("offset %v, window %v: tried again %v after the window", offset, window, after)
				}
				time.Sleep(time.Until(at))
				if err := guard(does(nothing)).ProcessTask(background, order("42")); err != nil {
					t.Error(err)
				}
				// However late asynq asks.
				time.Sleep(time.Hour)
				if d := asynqlock.RetryDelay(nil)(0, err, order("42")); d != 0 {
					t.Errorf("delay %v after the window, want none", d)
				}
			})
		}
	}
}

// A fixed lease may be released long before its end, so that is not waited for.
func TestRetryDelayAfterAFixedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := refused(t, core.FixedLease(time.Hour))
		wantRefusal(t, err)
		if d := asynqlock.RetryDelay(nil)(0, err, order("42")); d >= time.Second {
			t.Errorf("delay %v, want soon", d)
		}
	})
}
