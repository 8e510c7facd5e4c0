package asynqlock

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/hibiken/asynq"
)

// settings tells which settings for asynq.Config this process has made. Nothing else shows
// that they are missing: tasks are done, but late, or archived.
type settings struct {
	isFailure, retryDelay atomic.Bool
	warned                sync.Once
}

var made = new(settings)

// warnOfMissing logs once that a task is put off without them. Outside of a server no
// task is put off.
func (s *settings) warnOfMissing(ctx context.Context) {
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
		slog.WarnContext(ctx, "latchkey: a task was put off because its key is busy, but asynq has not been told what that means; call asynqlock.Configure, or add to asynq.Config",
			"missing", missing)
	})
}
