package asynqlock

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// Configure makes the four settings that the middleware needs. Call it before [asynq.NewServer].
// IsFailure and RetryDelayFunc become [IsFailure] and [RetryDelay] of the functions that cfg has,
// if any. DelayedTaskCheckInterval becomes 200 ms and TaskCheckInterval 100 ms, unless cfg says
// otherwise: with asynq's own 5 s and 1 s, tasks of a busy key come back late. It changes nothing
// else.
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

func (lockerOption) String() string {
	return "asynqlock.Locker is an option of asynqlock.By and the like: give it there"
}

// Locker is Config.Locker as an option of the By functions, which panic when l is nil.
func Locker(l *core.Locker) core.Option { return adapter.Option(lockerOption{l}) }

// settings are those for asynq.Config that this process has made. Without them tasks are done
// late, or archived, and nothing else shows why.
type settings struct {
	isFailure, retryDelay atomic.Bool
	warned                sync.Once
}

var settingsMade = new(settings)

// warnOfMissing logs once that a task is put off without them. Outside of a server no
// task is put off.
func (s *settings) warnOfMissing(ctx context.Context, logger *slog.Logger) {
	if _, served := asynq.GetTaskID(ctx); !served {
		return
	}
	var missing []string
	if !s.isFailure.Load() {
		missing = append(missing, "IsFailure: asynqlock.IsFailure(nil)")
	}
	if !s.retryDelay.Load() {
		missing = append(missing, "RetryDelayFunc: asynqlock.RetryDelay(nil)")
	}
	if len(missing) == 0 {
		return
	}
	s.warned.Do(func() {
		logger.WarnContext(context.WithoutCancel(ctx), "latchkey: a task was put off because its key is busy, "+
			"but asynq has not been told what that means; call asynqlock.Configure, or add to asynq.Config", "missing", missing)
	})
}
