//go:build go1.25

package asynqlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
)

// A task whose deadline passes while it waits has had no other one dropped that would have run after that.
func TestKeepOneOutlivesADeadline(t *testing.T) {
	for name, late := range map[string][]asynq.Option{
		"no deadline": nil, "a timeout": {asynq.Timeout(5 * time.Minute)}, "a later deadline": {asynq.Deadline(time.Now().Add(time.Hour))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReindex(t, time.Minute)
				defer r.close()
				r.open()
				release := hold(t, r.locker(), "order_id=42")
				deadline := asynq.Deadline(time.Now().Add(90 * time.Second))
				r.trigger(1, deadline, asynq.TaskID("first"))
				time.Sleep(10 * time.Second)
				r.trigger(5, deadline) // of the same time to live
				time.Sleep(10 * time.Second)
				r.wantTasks(1)
				r.trigger(5, late...)
				time.Sleep(100 * time.Second)
				r.wantTasks(1) // one of the five
				release()
				time.Sleep(2 * time.Minute)
				r.wantRuns(1)
				r.wantTasks(0)
			})
		})
	}
}

// When its deadline passes nobody waits: the next task does.
func TestKeepOneEndsAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReindex(t, time.Minute)
		defer r.close()
		r.open()
		locker := r.locker()
		release := hold(t, locker, "order_id=42")
		r.trigger(1, asynq.Deadline(time.Now().Add(30*time.Second)))
		time.Sleep(5 * time.Second)
		info, err := locker.Inspect(background, waits)
		if err != nil || info.State != core.StateParked || info.TTL > 25*time.Second {
			t.Errorf("while it waits: %+v, %v", info, err)
		}
		time.Sleep(26 * time.Second)
		if info, err = locker.Inspect(background, waits); err != nil || info.Locked {
			t.Errorf("after its deadline: %+v, %v", info, err)
		}
		release()
	})
}
