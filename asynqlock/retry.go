package asynqlock

import (
	"errors"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
)

// maxClosingDelay bounds the delay of a task that was refused because the Locker was closing.
const maxClosingDelay = time.Second

// minOverloadDelay is the least delay of a task for which Redis was not asked, because that has more to do than it can.
const minOverloadDelay = time.Second

// refusal ends a task that did not run because its key was busy, Redis overloaded or the Locker
// closing. Core's errors, which a handler may return for a lock of its own, are
// never of this type.
type refusal struct {
	cause error
	due   time.Time // when asynq is to run the task again; it drops fractions of a second. Zero: at once
}

func (r *refusal) Error() string { return didNotRun + core.Detail(r.cause) }
func (r *refusal) Unwrap() error { return r.cause }

const didNotRun = "asynqlock: the task did not run: "

// failure ends a task that did not run because it is unknown who holds its key. Its text goes to
// asynq's log, and to everybody who inspects the task.
type failure struct{ cause error }

func (f *failure) Error() string { return didNotRun + core.Detail(f.cause) }
func (f *failure) Unwrap() error { return f.cause }

// IsFailure is for asynq.Config.IsFailure, where [Configure] sets it. A task that did not run
// because its key was busy, Redis overloaded or the Locker closing has not failed: it uses up no retry, and is not
// in the statistics. Other errors are passed to next, also those of locks that
// the handler takes itself; with a nil next they are failures.
//
// asynq calls Config.ErrorHandler for every error, failure or not: to report
// failures only, ask the same function there.
func IsFailure(next func(error) bool) func(error) bool {
	settingsMade.isFailure.Store(true)
	return func(err error) bool {
		var r *refusal
		switch {
		case errors.As(err, &r):
			return false
		case next != nil:
			return next(err)
		default:
			return err != nil
		}
	}
}

// RetryDelay is for asynq.Config.RetryDelayFunc, where [Configure] sets it. It says when a task is
// due again that did not run:
//
//   - Its key was busy: at once, or later the more tasks of that key this process has put off,
//     and the longer the key has been busy. So a bounded number comes back in a second. The
//     delay is at most an eighth of the time since this process last had the key, or 5 s, or
//     sixteen times as long as the last tasks have had the key, whichever is most. It is longer,
//     up to a minute, where otherwise more than a hundred would come back in a second.
//   - It was parked, see [Config.Inspector]: in one to two minutes, unless it is run before.
//   - A dedup window stopped it: in the first second after the window.
//   - The Locker was closing: within a second.
//   - Redis is overloaded ([core.ErrOverloaded]): as much later as it has to do, and a second at least.
//
// Other errors are passed to next; with a nil next asynq's own delay is used.
//
// asynq looks for tasks that are due once in Config.DelayedTaskCheckInterval, five
// seconds if zero, and then for pending ones once in Config.TaskCheckInterval, a
// second if zero.
func RetryDelay(next asynq.RetryDelayFunc) asynq.RetryDelayFunc {
	settingsMade.retryDelay.Store(true)
	if next == nil {
		next = asynq.DefaultRetryDelayFunc
	}
	return func(n int, err error, t *asynq.Task) time.Duration {
		var r *refusal
		if !errors.As(err, &r) {
			return next(n, err, t)
		}
		return max(0, time.Until(r.due))
	}
}
