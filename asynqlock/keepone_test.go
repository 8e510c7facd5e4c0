//go:build go1.25

package asynqlock_test

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
)

// reindex is tasks of one key with KeepOne, on servers in a bubble.
type reindex struct {
	*bubble
	inspector *asynq.Inspector
	work      time.Duration

	mu        sync.Mutex
	triggered time.Time
	began     []time.Time
	ids       []string // of the tasks that ran
	now       int
}

func newReindex(tb testing.TB, work time.Duration) *reindex {
	r := &reindex{bubble: newBubble(tb), work: work}
	time.Sleep(time.Millisecond) // a task that begins at a whole second seems to have an asynq.Deadline
	r.inspector = asynq.NewInspectorFromRedisClient(r.client)
	return r
}

// open starts a server with a Locker of its own, which it returns.
func (r *reindex) open(opts ...core.Option) *core.Locker {
	r.tb.Helper()
	locker := r.locker()
	r.start(10, asynqlock.With(locker, asynqlock.OnBusy(asynqlock.KeepOne)).ByPayload("order_id", opts...)(r))
	return locker
}

func (r *reindex) trigger(n int, opts ...asynq.Option) {
	r.tb.Helper()
	for range n {
		r.enqueue(order("42"), opts...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.triggered = time.Now()
}

func (r *reindex) ProcessTask(ctx context.Context, _ *asynq.Task) error {
	id, _ := asynq.GetTaskID(ctx)
	r.mu.Lock()
	r.began, r.ids = append(r.began, time.Now()), append(r.ids, id)
	if r.now++; r.now > 1 {
		r.tb.Error("two runs at once")
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.now--
	}()
	time.Sleep(r.work)
	return nil
}

// wantTasks fails the test unless asynq has so many tasks that run or are to run.
func (r *reindex) wantTasks(want int) {
	r.tb.Helper()
	synctest.Wait()
	q, err := r.inspector.GetQueueInfo("default")
	if err != nil {
		r.tb.Fatal(err)
	}
	if n := q.Active + q.Pending + q.Retry + q.Scheduled; n != want || q.Archived > 0 {
		r.tb.Errorf("asynq has %d tasks, %d archived; want %d tasks", n, q.Archived, want)
	}
}

// wantRuns fails the test unless there were so many runs, of which one began after the last trigger.
func (r *reindex) wantRuns(want int) {
	r.tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.began) != want || r.began[want-1].Before(r.triggered) {
		r.tb.Errorf("the runs began %v, the last trigger came %v; want %d runs", r.began, r.triggered, want)
	}
}

// requests is a hook of a client that decides about each of its requests.
type requests func(send func() error) error

func (r requests) DialHook(next redis.DialHook) redis.DialHook { return next }
func (r requests) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := r(func() error { return next(ctx, cmd) })
		cmd.SetErr(err)
		return err
	}
}

func (r requests) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := r(func() error { return next(ctx, cmds) })
		for _, cmd := range cmds {
			if err == os.ErrDeadlineExceeded {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// A hundred tasks during a run are one more run, which begins after the last of them.
func TestKeepOneOfAHundred(t *testing.T) {
	for name, opts := range map[string][]core.Option{"waiting": nil, "long": {core.Wait(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReindex(t, time.Minute)
				defer r.close()
				for range 3 {
					r.open(opts...)
				}
				r.trigger(1)
				time.Sleep(5 * time.Second)
				r.trigger(1)
				time.Sleep(5 * time.Second)
				r.trigger(99)
				time.Sleep(5 * time.Second)
				r.wantTasks(2)
				for range 3 { // the one that waits stays it, over its retries
					time.Sleep(10 * time.Second)
					r.trigger(1)
					time.Sleep(time.Second)
					r.wantTasks(2)
				}
				time.Sleep(2 * time.Minute)
				r.wantRuns(2)
				r.wantTasks(0)
			})
		})
	}
}

// What comes while the one that has waited runs is followed by one more run.
func TestKeepOneAfterTheOneThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReindex(t, time.Minute)
		defer r.close()
		r.open()
		r.open()
		r.trigger(2)
		time.Sleep(80 * time.Second) // the second runs
		r.wantRuns(2)
		r.trigger(3)
		time.Sleep(10 * time.Second)
		r.wantTasks(2)
		time.Sleep(3 * time.Minute)
		r.wantRuns(3)
		r.wantTasks(0)
	})
}

// A worker that dies takes nothing along: asynq gives the task that waits in it to another worker, where it is still the one.
func TestKeepOneWorkerDies(t *testing.T) {
	for name, revives := range map[string]bool{"killed": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReindex(t, 4*time.Minute)
				defer r.close()
				var dead atomic.Bool
				client := r.dial()
				client.AddHook(requests(func(send func() error) error {
					if dead.Load() {
						time.Sleep(time.Second)
						return os.ErrDeadlineExceeded
					}
					return send()
				}))
				locker, err := core.New(client)
				if err != nil {
					t.Fatal(err)
				}
				guard := asynqlock.With(locker, asynqlock.OnBusy(asynqlock.KeepOne), core.Wait(time.Hour)).ByPayload("order_id")
				release := hold(t, r.locker(), "order_id=42")
				dying := asynq.NewServerFromRedisClient(client, asynq.Config{
					Concurrency: 10, IsFailure: asynqlock.IsFailure(nil), RetryDelayFunc: asynqlock.RetryDelay(nil),
					Logger: silent{}, ShutdownTimeout: time.Second,
				})
				if err := dying.Start(guard(r)); err != nil {
					t.Fatal(err)
				}
				r.stops = append(r.stops, func() {
					dying.Shutdown()
					_ = locker.Close(background)
					_ = client.Close()
				})
				r.trigger(1, asynq.TaskID("waits"))
				time.Sleep(3 * time.Second) // it waits in its worker
				dead.Store(true)
				r.open()
				for range 20 {
					time.Sleep(10 * time.Second)
					r.trigger(1)
				}
				time.Sleep(2 * time.Second)
				r.wantTasks(1)
				if revives {
					dead.Store(false)
				}
				release()
				time.Sleep(90 * time.Second)
				r.wantRuns(1)
				if r.ids[0] != "waits" {
					t.Errorf("task %s has run", r.ids[0])
				}
				dead.Store(false) // to end
			})
		})
	}
}
