package asynqlock

import (
	"context"
	"errors"
	"runtime"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// errNoReturn stands for the error of a handler that has panicked, or has ended its goroutine.
var errNoReturn = errors.New("asynqlock: the handler has not returned")

// work runs the handler under the locks of its keys. asynqCtx is the context that asynq has given the task. When asynq
// does not run the task again, a lock that was handed over to it is not parked for it.
func work(asynqCtx, lockedCtx context.Context, keys []string, t *asynq.Task, next asynq.Handler) (err error) {
	err = errNoReturn
	defer func() {
		if err == errNoReturn && !isCalledByPanic() || !isOver(asynqCtx, err) {
			return
		}
		for _, key := range keys {
			if lock, held := core.FromContextKey(lockedCtx, key); held {
				adapter.VoidTicket(lock)
			}
		}
	}()
	return next.ProcessTask(lockedCtx, t)
}

// isOver reports that asynq does not run the task again. Where the context has ended asynq has decided before, by the
// end alone: after a deadline as for any other error, and after a shutdown, or if somebody else has cancelled the
// task, it may run it again, however many retries are left.
func isOver(asynqCtx context.Context, err error) bool {
	switch ended := asynqCtx.Err(); {
	case err == nil:
		return false
	case ended == nil && (errors.Is(err, asynq.RevokeTask) || errors.Is(err, asynq.SkipRetry)):
		return true
	default:
		return isLastAttempt(asynqCtx) && (ended == nil || ended == context.DeadlineExceeded)
	}
}

// isCalledByPanic reports that a panic has called the deferred function that calls it, and not runtime.Goexit, after which
// asynq learns nothing of the task until its deadline. To recover would hide from asynq where the panic was.
func isCalledByPanic() bool {
	pc, _, _, _ := runtime.Caller(2)
	f := runtime.FuncForPC(pc)
	return f != nil && f.Name() == "runtime.gopanic"
}
