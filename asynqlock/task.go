package asynqlock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
)

// task is what the owners of the locks of all its runs begin with; empty outside of a server.
type task string

func taskOf(ctx context.Context) task {
	id, ok := asynq.GetTaskID(ctx)
	if !ok {
		return ""
	}
	queue, _ := asynq.GetQueueName(ctx)
	sum := sha256.Sum256([]byte(queue + "\x00" + id)) // users choose ids, of any length
	return task("asynq:" + hex.EncodeToString(sum[:16]) + ":")
}

// has reports whether who holds a lock is a run of the task.
func (t task) has(h core.Holder) bool { return t != "" && strings.HasPrefix(h.Owner, string(t)) }

// identity names the task for Drop, which asks whether an earlier run of it holds the key. A
// task that runs under a lock enters that with the owner that the lock has.
func (g *guard) identity(ctx context.Context) task {
	if g.config.OnBusy != Drop {
		return ""
	}
	return taskOf(ctx)
}
