//go:build go1.25

package asynqlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// No two tests have anything in common: each has a Locker of its own, by With. None is the default.
func TestWithInParallel(t *testing.T) {
	key := keyfunc.Payload("order_id")
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			locker := locktest.New(t)
			locks := asynqlock.With(locker, core.NoWait(), asynqlock.OnBusy(asynqlock.Drop))
			for name, guard := range map[string]asynq.MiddlewareFunc{
				"ByPayload":  locks.ByPayload("order_id"),
				"ByTemplate": locks.ByTemplate("order_id={payload.order_id}"),
				"By":         locks.By(key),
				"ByAll":      locks.ByAll(keyfunc.All("order_id", key)),
				"New":        locks.New(asynqlock.Config{Key: key}),
			} {
				err := guard(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
					if info, err := locker.Inspect(ctx, "order_id=42"); err != nil || !info.Locked {
						t.Errorf("%s: the handler runs without a lock: %v", name, err)
					}
					other := locktest.Hold(t, locker, "order_id=43")
					defer other()
					wantRefusal(t, guard(forbidden(t)).ProcessTask(background, order("43")), asynq.RevokeTask)
					return nil
				})).ProcessTask(background, order("42"))
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

func TestWhatMiddlewareIsGivenItselfCountsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		common, own := locktest.New(t), locktest.New(t)
		defer locktest.Hold(t, own, "order_id=42")()
		locks := asynqlock.With(nil, asynqlock.Locker(common), asynqlock.OnBusy(asynqlock.Drop), core.NoWait())
		for _, guard := range []asynq.MiddlewareFunc{
			locks.ByPayload("order_id", asynqlock.Locker(own), asynqlock.OnBusy(asynqlock.Retry)),
			locks.New(asynqlock.Config{Locker: own, Key: keyfunc.Payload("order_id"), Options: []core.Option{asynqlock.OnBusy(asynqlock.Retry)}}),
		} {
			err := guard(forbidden(t)).ProcessTask(background, order("42"))
			wantRefusal(t, err, core.ErrNotAcquired)
			wantNot(t, err, asynq.RevokeTask)
		}
	})
}

func TestWithNilAsksForTheDefaultLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core.SetDefault(nil)
		defer core.SetDefault(nil)
		guard := asynqlock.With(nil, core.NoWait()).ByPayload("order_id")
		wantFailure(t, guard(forbidden(t)).ProcessTask(background, order("42")))
		for range 2 {
			locker := locktest.New(t)
			core.SetDefault(locker)
			if err := guard(does(nothing)).ProcessTask(background, order("42")); err != nil {
				t.Error(err)
			}
			defer locktest.Hold(t, locker, "order_id=42")()
			began := time.Now()
			wantRefusal(t, guard(forbidden(t)).ProcessTask(background, order("42")), core.ErrNotAcquired)
			if waited := time.Since(began); waited > 0 {
				t.Errorf("it has waited for %v in spite of NoWait", waited)
			}
		}
	})
}

func TestWithPanicsOnABadOption(t *testing.T) {
	for name, option := range map[string]core.Option{
		"empty": {}, "bad": core.Lease(-1), "owner": core.Owner("me"), "New's": core.Prefix("x:"),
		"another's": adapter.Option("for another"), "nil": asynqlock.Locker(nil), "policy": asynqlock.OnBusy(7),
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "asynqlock: ") {
					t.Errorf("panic %q", text)
				}
			}()
			asynqlock.With(nil, option)
		})
	}
}
