package asynqlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// shop runs tasks on servers whose tasks are parked, in a bubble.
type shop struct {
	*bubble
	work      time.Duration
	inspector *asynq.Inspector

	mu   sync.Mutex
	runs map[string]int       // by task
	last map[string]time.Time // when one was done, by order
	now  map[string]int       // at work, by order
	most int                  // at once, of an order
}

func newShop(tb testing.TB, work time.Duration) *shop {
	s := &shop{bubble: newBubble(tb), work: work, runs: map[string]int{}, last: map[string]time.Time{}, now: map[string]int{}}
	s.inspector = asynq.NewInspectorFromRedisClient(s.client)
	return s
}

// open starts a server with a Locker of its own, which it returns.
func (s *shop) open(workers int, opts ...core.Option) *core.Locker {
	s.tb.Helper()
	locker := s.locker()
	s.start(workers, asynqlock.New(asynqlock.Config{
		Locker:            locker,
		Key:               keyfunc.Payload("order_id"),
		Inspector:         s.inspector,
		Workers:           workers,
		TaskCheckInterval: 100 * time.Millisecond,
		Options:           opts,
	})(s))
	return locker
}

func (s *shop) ProcessTask(ctx context.Context, t *asynq.Task) error {
	id, _ := asynq.GetTaskID(ctx)
	var p struct {
		Order string `json:"order_id"`
	}
	if err := json.Unmarshal(t.Payload(), &p); err != nil {
		return err
	}
	enter := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now[p.Order] += n
		s.most = max(s.most, s.now[p.Order])
	}
	enter(1)
	defer enter(-1)
	time.Sleep(s.work)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[id]++
	s.last[p.Order] = time.Now()
	if p.Order == "fails" {
		return errors.New("no money")
	}
	return nil
}

// enqueues tasks of an order.
func (s *shop) enqueues(n int, id string, opts ...asynq.Option) {
	for range n {
		s.enqueue(order(id), opts...)
	}
}

// done returns how many tasks have run.
func (s *shop) done() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

// wantDone waits until so many have run, once each, and returns how long that took.
func (s *shop) wantDone(n int, within time.Duration) (took time.Duration) {
	s.tb.Helper()
	began := time.Now()
	for s.done() < n && time.Since(began) < within {
		time.Sleep(10 * time.Millisecond)
	}
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) != n {
		s.tb.Errorf("%d of %d tasks have run after %v", len(s.runs), n, time.Since(began))
	}
	for id, runs := range s.runs {
		if runs != 1 {
			s.tb.Errorf("task %s has run %d times", id, runs)
		}
	}
	if failures := s.failures(); len(failures) > 0 {
		s.tb.Errorf("failures: %v", failures)
	}
	return time.Since(began)
}

// holds has the lock of an order until it is told to release it.
func (s *shop) holds(locker *core.Locker, id string) (release func()) {
	s.tb.Helper()
	return hold(s.tb, locker, "order_id="+id)
}

// failing is an Inspector whose Redis does not answer, until it is closed.
func failing() (inspector *asynq.Inspector, stop func()) {
	client := redis.NewClient(&redis.Options{
		Addr:            "127.0.0.1:6379", // not dialled
		Dialer:          func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed },
		MaxRetries:      -1,
		DisableIdentity: true,
	})
	return asynq.NewInspectorFromRedisClient(client), func() {
		_ = client.Close()
		time.Sleep(2 * time.Second) // go-redis dials each second, and sees then that it is closed
	}
}

const notesOf42 = "lock:{lock:order_id=42}:notes"

// A key with many tasks is used nearly all the time, and the others hardly notice.
func TestParkedTasksFollowOneAnother(t *testing.T) {
	for _, c := range []struct {
		name           string
		servers        int
		workers        int
		opts           []core.Option
		most           int           // at once
		hot, others    time.Duration // by when they are to be done
		refusalsPerHot float64
	}{
		{name: "one server", servers: 1, workers: 10, most: 1, hot: 11 * time.Second, others: 4 * time.Second, refusalsPerHot: 1},
		{name: "many workers", servers: 1, workers: 100, most: 1, hot: 11 * time.Second, others: time.Second, refusalsPerHot: 1.1},
		{name: "two servers", servers: 2, workers: 10, most: 1, hot: 11 * time.Second, others: 2 * time.Second, refusalsPerHot: 1.2},
		{name: "permits", servers: 1, workers: 10, opts: []core.Option{core.Permits(2)}, most: 2, hot: 6 * time.Second, others: 4 * time.Second, refusalsPerHot: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, 100*time.Millisecond)
				defer s.close()
				for i := range 100 {
					s.enqueues(1, "42")
					s.enqueues(1, fmt.Sprint("other ", i))
				}
				began := time.Now()
				for range c.servers {
					s.open(c.workers, c.opts...)
				}
				s.wantDone(200, c.hot)
				for id, last := range s.last {
					if took := last.Sub(began); id != "42" && took > c.others {
						t.Errorf("a task with a key of its own was done after %v", took)
					}
				}
				if s.most > c.most {
					t.Errorf("%d tasks of a key at once, of %d", s.most, c.most)
				}
				if per := float64(s.refused.Load()) / 100; per > c.refusalsPerHot {
					t.Errorf("%.2f refusals for each task", per)
				}
			})
		})
	}
}

// Tasks of a key that stays busy do not keep workers from others, nor come back all the time.
func TestParkedTasksOfABlockedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		locker := s.open(5)
		release := s.holds(locker, "42")
		s.enqueues(30, "42")
		time.Sleep(10 * time.Second)
		before := s.refused.Load()
		began := time.Now()
		for i := range 30 {
			s.enqueues(1, fmt.Sprint("other ", i))
			time.Sleep(time.Second)
		}
		if refused := s.refused.Load() - before; refused > 40 {
			t.Errorf("%d refusals in %v", refused, time.Since(began))
		}
		s.wantDone(30, time.Second)
		release()
		s.wantDone(60, 3*time.Second)
	})
}

// Whoever has lost a note, or died with it, costs its task two minutes at most.
func TestParkedTasksComeBackByThemselves(t *testing.T) {
	for _, c := range []struct {
		name   string
		opts   []asynq.Option
		within time.Duration
	}{
		{name: "usually", within: 2*time.Minute + 10*time.Second},
		{name: "before their deadline", opts: []asynq.Option{asynq.Timeout(time.Minute)}, within: 40 * time.Second},
		{name: "soon, when that is near", opts: []asynq.Option{asynq.Timeout(10 * time.Second)}, within: 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, 10*time.Millisecond)
				defer s.close()
				release := s.holds(s.locker(), "42")
				locker := s.open(5)
				s.enqueues(20, "42", c.opts...)
				for s.refused.Load() < 20 {
					time.Sleep(10 * time.Millisecond)
				}
				if err := locker.Close(background); err != nil { // nobody promotes any more
					t.Error(err)
				}
				s.stops[len(s.stops)-1]()
				s.stops = s.stops[:len(s.stops)-1]
				s.server.Del(notesOf42)
				release()
				s.open(5)
				s.wantDone(20, c.within)
			})
		})
	}
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

// asynq archives what fails on its last attempt.
func TestLastAttemptsAreNotParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		release := s.holds(s.open(10), "42")
		s.enqueues(10, "42", asynq.MaxRetry(0))
		time.Sleep(5 * time.Second)
		release()
		s.wantDone(10, time.Second)
	})
}

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

// A task cannot be run before asynq has put it off, which may take a while.
func TestNoteOfATaskThatIsStillActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		locker := s.locker()
		refused := make(chan struct{}, 100)
		s.start(5, asynqlock.New(asynqlock.Config{
			Locker: locker, Key: keyfunc.Payload("order_id"),
			Inspector: asynq.NewInspectorFromRedisClient(s.client), Workers: 5,
		})(s), func(c *asynq.Config) {
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
		s.start(5, asynqlock.New(asynqlock.Config{
			Locker: locker, Key: keyfunc.Payload("order_id"),
			Inspector: asynq.NewInspectorFromRedisClient(s.client), Workers: 5, TaskCheckInterval: 100 * time.Millisecond,
		})(s))
		s.enqueues(1, "42")
		<-taken
		release()
		s.wantDone(6, 10*time.Second)
	})
}

// Nothing stays of parked tasks when all are done.
func TestNothingStaysOfParkedTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		s.open(10)
		for range 2 {
			done := s.done()
			s.enqueues(30, "42")
			s.wantDone(done+30, time.Minute)
			time.Sleep(time.Second)
			if s.server.Exists(notesOf42) {
				t.Error("there are notes")
			}
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			if strings.Contains(string(stacks), "(*parking).promote(") {
				t.Error("there is a goroutine for them")
			}
		}
	})
}

// Each key of several has its place, and a task is parked beside the one that is busy.
func TestParkedTasksOfSeveralKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 50*time.Millisecond)
		defer s.close()
		s.start(10, asynqlock.New(asynqlock.Config{
			Locker:    s.locker(),
			Keys:      keyfunc.All("account", keyfunc.Payload("order_id"), keyfunc.Payload("to")),
			Inspector: asynq.NewInspectorFromRedisClient(s.client), Workers: 10, TaskCheckInterval: 100 * time.Millisecond,
		})(s))
		for i := range 60 {
			s.enqueue(asynq.NewTask("transfer", fmt.Appendf(nil, `{"order_id":"%d","to":"%d"}`, i%3, (i+1)%3)))
		}
		s.wantDone(60, 5*time.Second)
	})
}

func TestBadSettingsOfParkedTasks(t *testing.T) {
	inspector := new(asynq.Inspector)
	for name, c := range map[string]asynqlock.Config{
		"with Drop":             {Inspector: inspector, OnBusy: asynqlock.Drop},
		"workers":               {Inspector: inspector, Workers: -1},
		"how often asynq looks": {Inspector: inspector, TaskCheckInterval: -1},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "asynqlock: Config.") {
					t.Errorf("panic: %q", text)
				}
			}()
			c.Key = keyfunc.Payload("order_id")
			asynqlock.New(c)
		})
	}
}
