package asynqlock

import (
	"context"
	"errors"
	"runtime"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// work runs the handler under the locks of its keys. task is the context that asynq has given it. When asynq does not run
// the task again, a lock that was handed over to it is not parked for it.
func work(task, locked context.Context, keys []string, t *asynq.Task, next asynq.Handler) (err error) {
	returned := false
	defer func() {
		if !(returned || isCalledByPanic()) || !isOver(task, err, returned) {
			return
		}
		for _, key := range keys {
			if lock, held := core.FromContextKey(locked, key); held {
				adapter.VoidTicket(lock)
			}
		}
	}()
	err = next.ProcessTask(locked, t)
	returned = true
	return err
}

// isOver reports that asynq does not run the task again, of which the handler has returned an error, or panicked. Where
// the context has ended asynq has decided before, by the end alone: after a deadline as for any other error, and
// after a shutdown, or if somebody else has cancelled the task, it may run it again, however many retries are left.
func isOver(task context.Context, err error, returned bool) bool {
	switch ended := task.Err(); {
	case returned && err == nil:
		return false
	case ended == nil && (errors.Is(err, asynq.RevokeTask) || errors.Is(err, asynq.SkipRetry)):
		return true
	default:
		return isLastAttempt(task) && (ended == nil || ended == context.DeadlineExceeded)
	}
}

// isCalledByPanic reports that a panic has called the deferred function that calls it, and not runtime.Goexit, after which
// asynq hears nothing of the task until its deadline. To recover would hide from asynq where the panic was.
func isCalledByPanic() bool {
	pc, _, _, _ := runtime.Caller(2)
	f := runtime.FuncForPC(pc)
	return f != nil && f.Name() == "runtime.gopanic"
}
