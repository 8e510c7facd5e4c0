package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// side is how many keys have to be at work at once before any work ends.
const side = 4

// ledger watches which tasks run at the same time.
type ledger struct {
	mu       sync.Mutex
	now      map[string]int // running, by key
	met      chan struct{}  // closed when tasks of so many keys have run side by side
	together int            // most keys at once
	overlaps int            // of one key
	runs     map[string]int // by task
}

func newLedger() *ledger {
	return &ledger{now: map[string]int{}, runs: map[string]int{}, met: make(chan struct{})}
}

func (l *ledger) enter(key, task string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now[key]++
	if l.now[key] > 1 {
		l.overlaps++
	}
	l.runs[task]++
	if l.together < side && len(l.now) >= side {
		close(l.met)
	}
	l.together = max(l.together, len(l.now))
}

func (l *ledger) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now[key]--; l.now[key] == 0 {
		delete(l.now, key)
	}
}

// Sequential per entity, parallel across entities: two servers, as two processes
// would, with eight workers each.
func TestSequentialPerEntityParallelAcrossEntities(t *testing.T) {
	t.Parallel()
	const entities, each = 10, 12
	for _, c := range []struct {
		name string
		opts []core.Option
	}{
		{name: "short wait"},
		{name: "no wait", opts: []core.Option{core.NoWait()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t)
			l, paid := newLedger(), redis.NewClient(&redis.Options{Addr: f.addr})
			defer paid.Close()
			var mu sync.Mutex
			refused := 0
			for range 2 {
				mux := asynq.NewServeMux()
				mux.Use(asynqlock.New(asynqlock.Config{
					Locker:  f.locker(),
					Key:     keyfunc.Payload("order_id"),
					Options: c.opts,
				}))
				mux.HandleFunc("order:pay", func(ctx context.Context, task *asynq.Task) error {
					id, _ := asynq.GetTaskID(ctx)
					key := string(task.Payload())
					l.enter(key, id)
					defer l.leave(key)
					select {
					case <-l.met:
					case <-ctx.Done():
						return ctx.Err()
					}
					n, err := paid.Get(ctx, key).Int() // 0 and an error for the first
					if err != nil && !errors.Is(err, redis.Nil) {
						return err
					}
					return paid.Set(ctx, key, n+1, 0).Err() // whoever comes between is lost
				})
				f.start(mux, func(c *asynq.Config) {
					c.ErrorHandler = asynq.ErrorHandlerFunc(func(ctx context.Context, _ *asynq.Task, err error) {
						wantRefusal(t, err, core.ErrNotAcquired)
						if n, _ := asynq.GetRetryCount(ctx); n != 0 {
							t.Errorf("a task has been retried %d times", n)
						}
						mu.Lock()
						refused++
						mu.Unlock()
					})
				})
			}
			started := time.Now()
			ids := make([]string, 0, entities*each)
			for i := range entities * each {
				// Kept for a while, so that it can be seen afterwards.
				info := f.enqueue(order(fmt.Sprint(i%entities)), asynq.Retention(time.Hour))
				ids = append(ids, info.ID)
			}
			redistest.Await(t, 2*patience, "all tasks are done", func() bool {
				return f.queue().Completed == len(ids)
			})
			took := time.Since(started)

			for _, id := range ids {
				if info, ok := f.state(id); !ok || info.Retried != 0 {
					t.Errorf("task %s: %+v", id, info)
				}
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, id := range ids {
				if l.runs[id] != 1 {
					t.Errorf("task %s has run %d times, want once", id, l.runs[id])
				}
			}
			if len(l.runs) != len(ids) {
				t.Errorf("%d tasks have run, want %d", len(l.runs), len(ids))
			}
			if l.overlaps != 0 {
				t.Errorf("%d times two tasks of one entity ran at once", l.overlaps)
			}
			for i := range entities {
				key := string(order(fmt.Sprint(i)).Payload())
				if n, err := paid.Get(t.Context(), key).Int(); n != each || err != nil {
					t.Errorf("%s: %d of %d are counted, %v", key, n, each, err)
				}
			}
			q := f.queue()
			if q.Archived != 0 || q.Failed != 0 || q.Processed != len(ids) {
				t.Errorf("archived %d, failed %d, processed %d; want 0, 0, %d", q.Archived, q.Failed, q.Processed, len(ids))
			}
			mu.Lock()
			defer mu.Unlock()
			t.Logf("%d tasks of %d entities, of two round trips: %v, at most %d at once, refused %d times",
				len(ids), entities, took.Round(time.Millisecond), l.together, refused)
		})
	}
}
