package asynqlock

import (
	"context"
	"sync"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// running has the context of a task that runs, by each key under whose lock it does. Of several
// that run under one lock it may have none.
type running struct{ contexts sync.Map }

func (r *running) begin(ctx context.Context, keys []string) {
	for _, key := range keys {
		r.contexts.Store(key, ctx)
	}
}

func (r *running) end(keys []string) {
	for _, key := range keys {
		r.contexts.Delete(key)
	}
}

// ticket is the option by which the task of ctx resumes a lock that [Enqueue] has handed over to it. A task
// that waits behind others asks Redis for such a lock once more, in vain where another one runs under it:
// the lock was handed over before the task was enqueued. The task may be a second run of the one that
// runs, and the lock parked for it afterwards. So it asks when it comes again, and before its last attempt fails.
func (r *running) ticket(ctx context.Context, keys []string) []core.Option {
	id, served := asynq.GetTaskID(ctx)
	if !served {
		return nil
	}
	for _, key := range keys {
		if isLastAttempt(ctx) || !r.isHeld(key) {
			return []core.Option{adapter.Ticket(id)}
		}
	}
	return nil
}

// isHeld reports that a task that runs has the lock of a key, and is not about to hand it over.
func (r *running) isHeld(key string) bool {
	v, found := r.contexts.Load(key)
	if !found {
		return false
	}
	ctx := v.(context.Context)
	_, held := core.FromContextKey(ctx, key)
	return held && ctx.Err() == nil
}
