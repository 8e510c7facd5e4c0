package asynqlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// farm is a queue with its servers.
type farm struct {
	tb        testing.TB
	addr      string
	client    *asynq.Client
	inspector *asynq.Inspector
}

// newFarm opens the queue in a Redis; the caller closes it.
func newFarm(tb testing.TB, addr string) *farm {
	connection := asynq.RedisClientOpt{Addr: addr}
	return &farm{tb, addr, asynq.NewClient(connection), asynq.NewInspector(connection)}
}

// open is newFarm on a redis-server of its own, until the end of the test.
func open(tb testing.TB) *farm {
	tb.Helper()
	f := newFarm(tb, redistest.Start(tb).Addr())
	tb.Cleanup(f.close)
	return f
}

func (f *farm) close() {
	if err := errors.Join(f.client.Close(), f.inspector.Close()); err != nil {
		f.tb.Error(err)
	}
}

// locker returns a Locker with a client of its own, as each process has.
func (f *farm) locker(opts ...core.Option) *core.Locker {
	f.tb.Helper()
	client := redis.NewClient(&redis.Options{Addr: f.addr})
	locker, err := core.New(client, opts...)
	if err != nil {
		f.tb.Fatal(err)
	}
	f.tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(background, patience)
		defer cancel()
		if err := errors.Join(locker.Close(ctx), client.Close()); err != nil {
			f.tb.Errorf("closing a Locker: %v", err)
		}
	})
	return locker
}

// start runs a server, set up as the package's documentation says but quicker. It
// is shut down at the end of the test at the latest.
func (f *farm) start(handler asynq.Handler, configure ...func(*asynq.Config)) *asynq.Server {
	f.tb.Helper()
	config := asynq.Config{
		Concurrency:              8,
		IsFailure:                asynqlock.IsFailure(nil),
		RetryDelayFunc:           asynqlock.RetryDelay(atOnce),
		DelayedTaskCheckInterval: 50 * time.Millisecond,
		TaskCheckInterval:        10 * time.Millisecond,
		Logger:                   silent{},
	}
	for _, c := range configure {
		c(&config)
	}
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: f.addr}, config)
	if err := server.Start(handler); err != nil {
		f.tb.Fatal(err)
	}
	f.tb.Cleanup(server.Shutdown)
	return server
}

// atOnce lets failed tasks be retried without delay.
func atOnce(int, error, *asynq.Task) time.Duration { return 0 }

func (f *farm) enqueue(t *asynq.Task, opts ...asynq.Option) *asynq.TaskInfo {
	f.tb.Helper()
	info, err := f.client.Enqueue(t, opts...)
	if err != nil {
		f.tb.Fatal(err)
	}
	return info
}

// state is what asynq says about a task; ok is false when the task is gone.
func (f *farm) state(id string) (info *asynq.TaskInfo, ok bool) {
	f.tb.Helper()
	info, err := f.inspector.GetTaskInfo("default", id)
	if errors.Is(err, asynq.ErrTaskNotFound) {
		return nil, false
	}
	if err != nil {
		f.tb.Fatal(err)
	}
	return info, true
}

// awaitState waits until asynq has put a task there.
func (f *farm) awaitState(id string, want asynq.TaskState) *asynq.TaskInfo {
	f.tb.Helper()
	var info *asynq.TaskInfo
	redistest.Await(f.tb, patience, "a task that is "+want.String(), func() bool {
		var ok bool
		info, ok = f.state(id)
		return ok && info.State == want
	})
	return info
}

// awaitGone waits until asynq has forgotten a task.
func (f *farm) awaitGone(id string) {
	f.tb.Helper()
	redistest.Await(f.tb, patience, "a task that is gone", func() bool {
		_, ok := f.state(id)
		return !ok
	})
}

func (f *farm) queue() *asynq.QueueInfo {
	f.tb.Helper()
	info, err := f.inspector.GetQueueInfo("default")
	if err != nil {
		f.tb.Fatal(err)
	}
	return info
}

// awaitWaiting waits until a worker waits for the lock of a task that is active.
func (f *farm) awaitWaiting(id string) {
	f.tb.Helper()
	f.awaitState(id, asynq.TaskStateActive)
	client := redis.NewClient(&redis.Options{Addr: f.addr})
	defer client.Close()
	redistest.Await(f.tb, patience, "a subscription for the lock", func() bool {
		channels, err := client.PubSubChannels(background, "redisson_lock__channel:*").Result()
		return err == nil && len(channels) > 0
	})
}
