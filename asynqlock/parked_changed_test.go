//go:build go1.25

package asynqlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
)

// A task that is not any more as it was put off is not started: asynq would run one again that is done, or
// archived, or too early.
func TestParkedTasksThatHaveChangedAreNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		config, open := s.config(s.locker()), false
		config.Skip = func(*asynq.Task) bool { return open } // so that what is started by hand runs
		s.start(10, asynqlock.New(config)(s))
		release := s.holds(s.locker(), "42")
		ids := []string{"done", "failed", "archived", "deleted", "parked"}
		for _, id := range ids {
			s.enqueue(order("42"), asynq.TaskID(id), asynq.Retention(time.Hour))
		}
		s.blind.Store(true) // so that no scan succeeds before
		time.Sleep(5 * time.Second)
		synctest.Wait()
		inspector := asynq.NewInspectorFromRedisClient(s.client)
		open = true
		for _, id := range []string{"done", "failed"} {
			s.fails = id == "failed"
			if err := inspector.RunTask("default", id); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		open, s.fails, s.bubble.failed = false, false, nil
		if err := inspector.ArchiveTask("default", "archived"); err != nil {
			t.Fatal(err)
		}
		if err := inspector.DeleteTask("default", "deleted"); err != nil {
			t.Fatal(err)
		}
		release()
		s.blind.Store(false)
		time.Sleep(3 * time.Second)
		for id, want := range map[string]asynq.TaskState{
			"done": asynq.TaskStateCompleted, "failed": asynq.TaskStateRetry,
			"archived": asynq.TaskStateArchived, "parked": asynq.TaskStateCompleted,
		} {
			if info, err := inspector.GetTaskInfo("default", id); err != nil || info.State != want {
				t.Errorf("%s: %+v (%v), want it %v", id, info, err, want)
			}
		}
		s.wantDone(3, time.Second)
	})
}

// A task that asynq runs in a moment might have been run and be done when it is run once more.
func TestTaskThatIsDueSoonIsLeftToAsynq(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		release := s.holds(s.locker(), "42")
		s.open(5)
		s.enqueue(order("42"), asynq.TaskID("t"))
		s.blind.Store(true)
		time.Sleep(5 * time.Second)
		info, err := asynq.NewInspectorFromRedisClient(s.client).GetTaskInfo("default", "t")
		if err != nil {
			t.Fatal(err)
		}
		release()
		time.Sleep(time.Until(info.NextProcessAt) - 1500*time.Millisecond)
		s.blind.Store(false)
		time.Sleep(time.Until(info.NextProcessAt) - 100*time.Millisecond)
		if s.done() > 0 {
			t.Error("it was run before its time")
		}
		s.wantDone(1, 5*time.Second)
	})
}

// A task cannot be run before asynq has put it off, which may take a while.
func TestParkedTaskThatIsStillActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		locker := s.locker()
		refused := make(chan struct{}, 100)
		s.start(5, asynqlock.New(s.config(locker))(s), func(c *asynq.Config) {
			c.ErrorHandler = asynq.ErrorHandlerFunc(func(context.Context, *asynq.Task, error) {
				refused <- struct{}{}
				time.Sleep(700 * time.Millisecond)
			})
		})
		release := s.holds(locker, "42")
		s.enqueues(3, "42")
		for range 3 {
			<-refused
		}
		release()
		s.wantDone(3, 3*time.Second)
	})
}

// When asynq's Redis does not answer, nothing is lost, and nobody asks all the time.
func TestParkedTasksWhenTheInspectorFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		inspector, stop := failing()
		defer stop()
		s.inspector = inspector
		release := s.holds(s.open(5), "42")
		s.enqueues(20, "42")
		for s.refused.Load() < 16 {
			time.Sleep(10 * time.Millisecond)
		}
		before := s.server.CommandCount()
		time.Sleep(500 * time.Millisecond)
		if n := s.server.CommandCount() - before; n > 1000 {
			t.Errorf("%d commands in half a second", n)
		}
		release()
		s.wantDone(20, 2*time.Minute)
	})
}
