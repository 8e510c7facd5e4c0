package core

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// report logs at most one line a second of each kind, and in it how many were left
// out since the last one.
type report struct {
	logger *slog.Logger // nil: slog.Default

	mu    sync.Mutex
	kinds map[string]*reported
}

type reported struct {
	at      time.Time
	omitted int
}

// problem is for what may have done harm.
func (r *report) problem(kind string, args ...any) { r.limited(slog.LevelError, kind, args) }

// warn is for what may mend itself.
func (r *report) warn(kind string, args ...any) { r.limited(slog.LevelWarn, kind, args) }

// info is for what somebody has asked for, each time.
func (r *report) info(kind string, args ...any) { r.log(slog.LevelInfo, kind, args) }

func (r *report) limited(level slog.Level, kind string, args []any) {
	now := time.Now()
	r.mu.Lock()
	last := r.kinds[kind]
	if last != nil && now.Sub(last.at) < time.Second {
		last.omitted++
		r.mu.Unlock()
		return
	}
	if last != nil && last.omitted > 0 {
		args = append(args, "omitted", last.omitted)
	}
	r.kinds[kind] = &reported{at: now}
	r.mu.Unlock()
	r.log(level, kind, args)
}

func (r *report) log(level slog.Level, kind string, args []any) {
	logger := r.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.Log(context.Background(), level, "latchkey: "+kind, args...)
}
