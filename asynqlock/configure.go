package asynqlock

import (
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// Configure makes the four settings that the middleware needs, before [asynq.NewServer] gets cfg.
// IsFailure and RetryDelayFunc become [IsFailure] and [RetryDelay] of the functions that cfg has, if any.
// DelayedTaskCheckInterval becomes 200 ms and TaskCheckInterval 100 ms, unless cfg says
// otherwise: with asynq's own five seconds and one, tasks of a busy key come back late. Nothing else is changed.
func Configure(cfg *asynq.Config) {
	cfg.IsFailure = IsFailure(cfg.IsFailure)
	cfg.RetryDelayFunc = RetryDelay(cfg.RetryDelayFunc)
	if cfg.DelayedTaskCheckInterval == 0 {
		cfg.DelayedTaskCheckInterval = 200 * time.Millisecond
	}
	if cfg.TaskCheckInterval == 0 {
		cfg.TaskCheckInterval = 100 * time.Millisecond
	}
}

type lockerOption struct{ *core.Locker }

// Locker is Config.Locker as an option of the By functions, which panic when l is nil.
func Locker(l *core.Locker) core.Option { return adapter.Option(lockerOption{l}) }
