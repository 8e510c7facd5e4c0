package core

import (
	"log/slog"
	"sync"
	"time"
)

// report logs at most one line a second of each kind.
type report struct {
	logger *slog.Logger // nil: slog.Default

	mu   sync.Mutex
	last map[string]time.Time
}

func (r *report) warn(kind string, args ...any) {
	now := time.Now()
	r.mu.Lock()
	last, seen := r.last[kind]
	if seen && now.Sub(last) < time.Second {
		r.mu.Unlock()
		return
	}
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	r.last[kind] = now
	r.mu.Unlock()

	logger := r.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.Warn("latchkey: "+kind, args...)
}
