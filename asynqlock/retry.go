package asynqlock

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
)

// contentionError ends a task that did not run because its key was busy, or the
// Locker was closing. A handler's own errors are never of this type.
type contentionError struct{ cause error }

func (e *contentionError) Error() string { return "asynqlock: the task did not run: " + e.cause.Error() }
func (e *contentionError) Unwrap() error { return e.cause }

func isContention(err error) bool {
	var c *contentionError
	return errors.As(err, &c)
}

// IsFailure is for asynq.Config.IsFailure: a task that did not run because its
// key was busy has not failed, so it does not use up a retry. Other errors are
// passed to next; with a nil next they are failures.
func IsFailure(next func(error) bool) func(error) bool {
	return func(err error) bool {
		switch {
		case isContention(err):
			return false
		case next != nil:
			return next(err)
		default:
			return err != nil
		}
	}
}

// RetryDelay is for asynq.Config.RetryDelayFunc: a task whose key was busy is
// tried again within two seconds, or after the dedup window or fixed lease that
// was in its way. Other errors are passed to next; with a nil next asynq's own
// delay counts.
func RetryDelay(next asynq.RetryDelayFunc) asynq.RetryDelayFunc {
	if next == nil {
		next = asynq.DefaultRetryDelayFunc
	}
	return func(n int, err error, t *asynq.Task) time.Duration {
		if !isContention(err) {
			return next(n, err, t)
		}
		delay := time.Second / 2
		var busy *core.BusyError
		if errors.As(err, &busy) {
			delay = busy.RetryAfter
		}
		return delay + rand.N(time.Second)
	}
}
