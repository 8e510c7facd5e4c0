package core

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
)

// report logs at most one line a second of each kind, and in it how many were omitted.
type report struct {
	logger *slog.Logger // nil: slog.Default
	mu     sync.Mutex
	kinds  map[string]reported // the last line of each
}

type reported struct {
	at      time.Time
	omitted int // since then
}

// problem is for what may have done harm.
func (r *report) problem(kind string, args ...any) { r.limited(slog.LevelError, kind, args) }

// warn is for what may recover by itself.
func (r *report) warn(kind string, args ...any) { r.limited(slog.LevelWarn, kind, args) }

// info is for what somebody has asked for, each time.
func (r *report) info(kind string, args ...any) { r.log(slog.LevelInfo, kind, args) }

func (r *report) limited(level slog.Level, kind string, args []any) {
	r.mu.Lock()
	last, now := r.kinds[kind], time.Now()
	omit := now.Sub(last.at) < time.Second
	if omit {
		r.kinds[kind] = reported{last.at, last.omitted + 1}
	} else {
		r.kinds[kind] = reported{at: now}
	}
	r.mu.Unlock()
	if omit {
		return
	}
	if last.omitted > 0 {
		args = append(args, "omitted", last.omitted)
	}
	r.log(level, kind, args)
}

func (r *report) log(level slog.Level, kind string, args []any) {
	cmp.Or(r.logger, slog.Default()).Log(context.Background(), level, "latchkey: "+kind, args...)
}
