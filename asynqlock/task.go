package asynqlock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
)

// ownerPrefix is what the owners of the locks of all runs of a task begin with; empty outside of a server.
type ownerPrefix string

func ownerPrefixOf(ctx context.Context) ownerPrefix {
	id, ok := asynq.GetTaskID(ctx)
	if !ok {
		return ""
	}
	queue, _ := asynq.GetQueueName(ctx)
	sum := sha256.Sum256([]byte(queue + "\x00" + id)) // users choose ids, of any length
	return ownerPrefix("asynq:" + hex.EncodeToString(sum[:16]) + ":")
}

// holds reports whether a run of the task is the holder of a lock.
func (p ownerPrefix) holds(h core.Holder) bool {
	return p != "" && strings.HasPrefix(h.Owner, string(p))
}

// ownerPrefix is that of the task of ctx for Drop, which asks whether an earlier run of it holds the key, and for
// KeepOne, where the task that waits has the same. A task that runs under a lock enters that with the owner that the lock has.
func (g *guard) ownerPrefix(ctx context.Context) ownerPrefix {
	if g.config.OnBusy == Retry {
		return ""
	}
	return ownerPrefixOf(ctx)
}
