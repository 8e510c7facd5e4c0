package asynqlock

import (
	"context"
	"slices"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// ticket is the option by which the task of ctx resumes a lock that [Enqueue] has handed over to it. A task
// that waits behind others asks Redis for such a lock once more, in vain where another one runs under it:
// the lock was handed over before the task was enqueued. The task may be a second run of the one that
// runs, and the lock parked for it afterwards. So it asks when it comes again, and before its last attempt fails.
func (g *guard) ticketOptions(ctx context.Context, keys []string) []core.Option {
	id, served := asynq.GetTaskID(ctx)
	if !served || !isLastAttempt(ctx) && !slices.ContainsFunc(keys, g.mayBeParked) {
		return nil
	}
	return []core.Option{adapter.Ticket(id)}
}

// mayBeParked is false while a task that runs has the lock of a key, and is not about to hand it over.
func (g *guard) mayBeParked(key string) bool {
	v, _ := g.running.Load(key)
	ctx, runs := v.(context.Context)
	if !runs {
		return true
	}
	_, held := core.FromContextKey(ctx, key)
	return !held || ctx.Err() != nil
}
