//go:build go1.25

package asynqlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// hears is an Observer.
type hears func(core.Event)

func (f hears) Observe(ctx context.Context, e core.Event) context.Context {
	f(e)
	return ctx
}

func TestObserversHearOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []string
		locker := locktest.New(t, core.Observe(hears(func(e core.Event) {
			switch e.Kind {
			case core.EventAcquired:
				heard = append(heard, "acquired "+e.Name)
			case core.EventRefused:
				heard = append(heard, fmt.Sprintf("refused %s %s %d", e.Name, e.Reason, e.Status))
			}
		})))
		core.SetDefault(locker)
		defer core.SetDefault(nil)
		want := func(what string, want ...string) {
			t.Helper()
			if !slices.Equal(heard, want) {
				t.Errorf("%s: heard %q, want %q", what, heard, want)
			}
			heard = nil
		}

		named := asynqlock.ByPayload("order_id")
		if err := named(does(nothing)).ProcessTask(background, order("42")); err != nil {
			t.Error(err)
		}
		want("ByPayload", "acquired order_id")
		chosen := asynqlock.ByPayload("order_id", core.Name("orders"))
		if err := chosen(does(nothing)).ProcessTask(background, order("42")); err != nil {
			t.Error(err)
		}
		want("Name", "acquired orders")
		if err := asynqlock.By(keyfunc.TaskType())(does(nothing)).ProcessTask(background, order("42")); err != nil {
			t.Error(err)
		}
		want("By", "acquired taskType")
		byHand := func(keyfunc.Task) (string, error) { return "x", nil }
		if err := asynqlock.By(byHand)(does(nothing)).ProcessTask(background, order("42")); err != nil {
			t.Error(err)
		}
		want("by hand", "acquired ")

		release := hold(t, locker, "order_id=42")
		heard = nil
		wantRefusal(t, named(forbidden(t)).ProcessTask(background, order("42")))
		want("busy", "refused order_id wait_over 0")
		release()
		wantErr(t, named(forbidden(t)).ProcessTask(background, asynq.NewTask("order:pay", nil)), asynq.SkipRetry)
		want("no key", "refused order_id invalid_key 0")
		if err := locker.Close(background); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, named(forbidden(t)).ProcessTask(background, order("42")), core.ErrClosed)
		want("closed", "refused order_id closed 0")
	})
}
