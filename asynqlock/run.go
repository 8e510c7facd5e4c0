package asynqlock

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/hibiken/asynq"
)

// run is one run of a task, told apart from runs of other tasks.
type run struct {
	task  string // what the owners of all runs of the task begin with
	owner string // of the lock; no other run has it, or they would not exclude one another
}

// newRun names a run of ctx's task; ctx has none where no asynq server called.
func newRun(ctx context.Context) run {
	id, ok := asynq.GetTaskID(ctx)
	if !ok {
		return run{}
	}
	queue, _ := asynq.GetQueueName(ctx)
	sum := sha256.Sum256([]byte(queue + "\x00" + id)) // users choose ids, of any length
	task := "asynq:" + hex.EncodeToString(sum[:16]) + ":"
	return run{task: task, owner: task + rand.Text()}
}

// isOf reports whether the owner of a lock is a run of the same task.
func (r run) isOf(owner string) bool {
	return r.task != "" && strings.HasPrefix(owner, r.task)
}
