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

var bothAccounts = keyfunc.All("account", keyfunc.Payload("from"), keyfunc.Payload("to"))

func transfer(payload string) *asynq.Task { return asynq.NewTask("transfer", []byte(payload)) }

// A task for several keys has all of them or none, and is put off by the one that is busy.
func TestTaskHasAllItsLocksOrNone(t *testing.T) {
	ctx := taskContext(t, "my-id", 25)
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		ran := 0
		guard := asynqlock.New(asynqlock.Config{Locker: locker, Keys: bothAccounts})
		handler := guard(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			ran++
			if !isLocked(t, locker, "account=1") || !isLocked(t, locker, "account=2") {
				t.Error("an account is not locked")
			}
			return nil
		}))
		if err := handler.ProcessTask(ctx, transfer(`{"from":2,"to":1}`)); err != nil || ran != 1 {
			t.Errorf("%v; it ran %d times", err, ran)
		}

		for _, busy := range []string{"account=1", "account=2"} {
			release := hold(t, locker, busy)
			began := time.Now()
			err := handler.ProcessTask(ctx, transfer(`{"from":2,"to":1}`))
			wantErr(t, err, core.ErrNotAcquired)
			if took := time.Since(began); asynqlock.IsFailure(nil)(err) || took < time.Second || took > 1100*time.Millisecond {
				t.Errorf("%s busy: %v after %v, a failure: %v", busy, err, took, asynqlock.IsFailure(nil)(err))
			}
			time.Sleep(time.Second) // it is out of the queue
			release()
			if isLocked(t, locker, "account=1") || isLocked(t, locker, "account=2") {
				t.Error("an account is still locked")
			}
		}
		if err := handler.ProcessTask(ctx, transfer(`{"from":2}`)); ran != 1 {
			t.Error("it ran without a key")
		} else {
			wantErr(t, err, asynq.SkipRetry, keyfunc.ErrMissing)
		}
	})
}

// With Drop, who holds the key that is busy is asked for, whichever it is.
func TestDropOfATaskForSeveralKeys(t *testing.T) {
	ctx := taskContext(t, "my-id", 25)
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		release := hold(t, locker, "account=2")
		defer release()
		guard := asynqlock.New(asynqlock.Config{Locker: locker, Keys: bothAccounts, OnBusy: asynqlock.Drop})
		wantErr(t, guard(forbidden(t)).ProcessTask(ctx, transfer(`{"from":2,"to":1}`)), asynq.RevokeTask)
	})
}
