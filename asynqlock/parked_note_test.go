package asynqlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// A note that is out of date starts nothing: asynq would run its task again, or too early.
func TestNotesOutOfDateStartNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		locker, inspector := s.open(5), s.inspector
		s.enqueue(order("done"), asynq.TaskID("done"), asynq.Retention(time.Hour))
		s.enqueue(order("scheduled"), asynq.TaskID("scheduled"), asynq.ProcessIn(time.Hour))
		s.enqueue(order("fails"), asynq.TaskID("archived"), asynq.MaxRetry(0))
		s.enqueue(order("fails"), asynq.TaskID("failed"), asynq.MaxRetry(1))
		window, err := locker.Lock(background, "order_id=window", core.KeepFor(10*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if err := window.Unlock(background); err != nil {
			t.Fatal(err)
		}
		s.enqueue(order("window"), asynq.TaskID("window"))
		time.Sleep(5 * time.Second)

		for _, id := range []string{"done", "scheduled", "archived", "failed", "window", "never was"} {
			due := time.Now().Add(time.Minute)
			if info, err := inspector.GetTaskInfo("default", id); err == nil && id == "failed" {
				due = info.NextProcessAt // so that only its error tells
				if info.State != asynq.TaskStateRetry || time.Until(due) < 5*time.Second {
					t.Fatalf("%s: %v, due in %v", id, info.State, time.Until(due))
				}
			}
			text := fmt.Sprintf(`{"Queue":"default","ID":%q,"Due":%d}`, id, due.Unix())
			if err := adapter.AddNote(background, locker, "order_id=42", text, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range []string{"", "{", `{"Queue":"no such","ID":"1","Due":9999999999}`} {
			if err := adapter.AddNote(background, locker, "order_id=42", text, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		inWindow, err := inspector.GetTaskInfo("default", "window")
		if err != nil {
			t.Fatal(err)
		}
		before := s.done()
		release := s.holds(locker, "42")
		s.enqueues(10, "42") // and with them this process looks for notes
		time.Sleep(3 * time.Second)
		release()
		time.Sleep(3 * time.Second)
		if s.server.Exists(notesOf42) {
			t.Error("there are notes left")
		}
		if ran := s.done() - before; ran != 10 {
			t.Errorf("%d tasks have run, want the 10 of the order", ran)
		}
		for _, id := range []string{"done", "scheduled", "archived", "failed", "window"} {
			want := map[string]asynq.TaskState{
				"done": asynq.TaskStateCompleted, "scheduled": asynq.TaskStateScheduled,
				"archived": asynq.TaskStateArchived, "failed": asynq.TaskStateRetry, "window": asynq.TaskStateRetry,
			}[id]
			info, err := inspector.GetTaskInfo("default", id)
			if err != nil || info.State != want {
				t.Fatalf("%s: %+v (%v), want it %v", id, info, err, want)
			}
			if id == "window" && !info.LastFailedAt.Equal(inWindow.LastFailedAt) {
				t.Errorf("it was tried within the window, at %v", info.LastFailedAt)
			}
			if runs := s.runs[id]; runs > 1 {
				t.Errorf("%s has run %d times", id, runs)
			}
		}
	})
}

// A task that asynq runs in a moment might have been run and be done when it is run once more.
func TestTaskThatIsDueSoonIsLeftToAsynq(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		release, other := s.holds(s.locker(), "42"), s.holds(s.locker(), "43")
		inspector := s.inspector
		blind, stop := failing()
		defer stop()
		s.inspector = blind
		locker := s.open(5)
		s.enqueue(order("42"), asynq.TaskID("t"))
		time.Sleep(5 * time.Second)
		s.stops[len(s.stops)-1]() // its server, so that nobody takes the task
		s.stops = s.stops[:len(s.stops)-1]
		if err := locker.Close(background); err != nil {
			t.Error(err)
		}
		release()
		info, err := inspector.GetTaskInfo("default", "t")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(info.NextProcessAt) - 1500*time.Millisecond)

		s.inspector = inspector
		locker = s.open(5)
		note := fmt.Sprintf(`{"Queue":"default","ID":"t","Due":%d}`, info.NextProcessAt.Unix())
		if err := adapter.AddNote(background, locker, "order_id=43", note, time.Minute); err != nil {
			t.Fatal(err)
		}
		s.enqueues(10, "43") // and with them this process looks for notes
		time.Sleep(time.Until(info.NextProcessAt) - 100*time.Millisecond)
		if s.done() > 0 {
			t.Error("it was run before its time")
		}
		other()
		s.wantDone(11, 5*time.Second)
	})
}

// A task cannot be run before asynq has put it off, which may take a while.
func TestNoteOfATaskThatIsStillActive(t *testing.T) {
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

// whenTaken is a hook of the client that does something once, when the last note has been taken
// and the process does not know that yet.
type whenTaken struct {
	once sync.Once
	do   func()
}

func (h *whenTaken) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *whenTaken) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h *whenTaken) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if args := cmd.Args(); len(args) == 5 && fmt.Sprint(args[3]) == notesOf42 {
			if c, ok := cmd.(interface{ Slice() ([]any, error) }); ok {
				if reply, err := c.Slice(); err == nil && len(reply) == 2 && reply[0] == any(int64(0)) {
					h.once.Do(h.do)
				}
			}
		}
		return err
	}
}

// A note that is left just when there was none is not overlooked.
func TestNoteWhileTheLastOneIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		client := s.dial()
		locker, err := core.New(client)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		defer locker.Close(background)
		taken := make(chan struct{})
		client.AddHook(&whenTaken{do: func() {
			s.enqueues(5, "42")
			for n := s.refused.Load() + 1; s.refused.Load() < n; {
				time.Sleep(time.Millisecond)
			}
			close(taken)
		}})
		release := s.holds(locker, "42")
		config := s.config(locker)
		config.Workers = 5
		s.start(5, asynqlock.New(config)(s))
		s.enqueues(1, "42")
		<-taken
		release()
		s.wantDone(6, 10*time.Second)
	})
}
