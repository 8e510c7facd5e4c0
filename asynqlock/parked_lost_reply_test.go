package asynqlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// When replies to what promotes a task are lost, it still runs, and once: although asynq would
// run a task again that is done and kept.
func TestParkedTasksWhenRepliesAreLost(t *testing.T) {
	t.Parallel()
	const tasks, lost = 20, 8
	server := redistest.Start(t)
	f := newFarm(t, server.Addr())
	t.Cleanup(f.close)
	proxy := server.Proxy(t)
	inspector := asynq.NewInspectorFromRedisClient(proxy.Client(t, func(o *redis.Options) { o.MaxRetries = -1 }))
	promotes := func(args []string) bool { return len(args) > 2 && args[len(args)-1] == "asynq:{default}:g:" }

	var mu sync.Mutex
	runs := map[string]int{}
	refused := newWatch()
	locker := f.locker()
	release := hold(t, locker, "order_id=42")
	f.start(asynqlock.New(asynqlock.Config{
		Locker: locker, Key: keyfunc.Payload("order_id"),
		Inspector: inspector, Workers: 8, TaskCheckInterval: 10 * time.Millisecond,
	})(does(func(ctx context.Context) error {
		id, _ := asynq.GetTaskID(ctx)
		mu.Lock()
		defer mu.Unlock()
		runs[id]++
		return nil
	})), refused.configure)
	var faults []*redistest.Fault
	for range lost {
		faults = append(faults, proxy.DropReply(promotes))
	}
	for range tasks {
		f.enqueue(order("42"), asynq.Retention(time.Hour))
	}
	refused.awaitRefusals(t, tasks)
	release()
	redistest.Await(t, patience, "all tasks done", func() bool { return f.queue().Completed == tasks })
	mu.Lock()
	defer mu.Unlock()
	for id, n := range runs {
		if n != 1 {
			t.Errorf("%s has run %d times", id, n)
		}
	}
	if !slices.ContainsFunc(faults, func(f *redistest.Fault) bool { return f.Count() > 0 }) {
		t.Error("no reply was lost")
	}
}
