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

// Tasks that are put off to the end of a window do not come back by the key's pace, so
// they slow down none that does.
func TestTasksThatAreNotPacedSlowDownNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		locker := locktest.New(t)
		work := asynqlock.New(asynqlock.Config{
			Locker: locker, Key: keyfunc.Payload("id"), Options: []core.Option{core.NoWait()},
		})(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil }))
		task := asynq.NewTask("t", []byte(`{"id":42}`))

		window, err := locker.Lock(ctx, "id=42", core.KeepFor(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if err := window.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		for range 500 {
			if work.ProcessTask(ctx, task) == nil {
				t.Fatal("ran within the window")
			}
		}
		if _, err := locker.ForceUnlock(ctx, "id=42"); err != nil {
			t.Fatal(err)
		}
		short, err := locker.Lock(ctx, "id=42", core.Lease(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		defer short.Unlock(ctx)
		paced := asynqlock.RetryDelay(nil)(1, work.ProcessTask(ctx, task), task)
		if paced > time.Second {
			t.Errorf("the first task that is to come back is put off for %v", paced)
		}
	})
}
