// Package limitedlog writes at most one line a second of each kind to a log: in an outage everything fails at once.
package limitedlog

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
)

// Log is safe for concurrent use. The zero value is ready.
type Log struct {
	Logger *slog.Logger // nil: slog.Default

	mu    sync.Mutex
	kinds map[string]written // the last line of each
}

type written struct {
	at      time.Time
	omitted int // since then
}

// Limited writes a line unless there was one of the same kind in the last second, and in it how many were omitted.
func (l *Log) Limited(level slog.Level, kind string, args ...any) {
	if write := l.Later(level, kind); write != nil {
		write(args...)
	}
}

// Later is Limited for a line whose details come later, by the function that it returns; nil: the line is omitted.
func (l *Log) Later(level slog.Level, kind string) (write func(args ...any)) {
	l.mu.Lock()
	if l.kinds == nil {
		l.kinds = map[string]written{}
	}
	last, now := l.kinds[kind], time.Now()
	omit := now.Sub(last.at) < time.Second
	if omit {
		l.kinds[kind] = written{last.at, last.omitted + 1}
	} else {
		l.kinds[kind] = written{at: now}
	}
	l.mu.Unlock()
	if omit {
		return nil
	}
	return func(args ...any) {
		if last.omitted > 0 {
			args = append(args, "omitted", last.omitted)
		}
		l.Each(level, kind, args...)
	}
}

// Each writes a line, however many there were.
func (l *Log) Each(level slog.Level, kind string, args ...any) {
	cmp.Or(l.Logger, slog.Default()).Log(context.Background(), level, "latchkey: "+kind, args...)
}
