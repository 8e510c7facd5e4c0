// Package refusals is a recipe to copy: it logs who was refused, why, and who had the lock, so that "why was this user
// refused at 02:13?" has an answer. It serves gin, echo and net/http as it is: refusals_test.go has a server of each.
package refusals

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// Who is what the log shall say of the client. Middleware before the guard puts it into the request's context.
type Who struct{ RequestID, User string }

type whoKey struct{}

// With is a context of a request with its client.
func With(ctx context.Context, w Who) context.Context { return context.WithValue(ctx, whoKey{}, w) }

// Log is an Observer that writes a line about each refused request, or about one in a tenth of a second where there are more.
type Log struct {
	logger  *slog.Logger
	lines   chan refusal
	omitted atomic.Int64
}

type refusal struct {
	who   Who
	event core.Event
	at    time.Time
}

// New returns a Log for [core.Observe]. Run has to be called, too.
func New(logger *slog.Logger) *Log { return &Log{logger: logger, lines: make(chan refusal, 100)} }

// Observe holds nothing up: what does not fit is counted.
func (l *Log) Observe(ctx context.Context, e core.Event) context.Context {
	if e.Kind == core.EventRefused {
		who, _ := ctx.Value(whoKey{}).(Who)
		select {
		case l.lines <- refusal{who, e, time.Now()}:
		default:
			l.omitted.Add(1)
		}
	}
	return ctx
}

// Run writes the lines until ctx ends. It asks Redis who holds the lock then, at most ten times a second.
func (l *Log) Run(ctx context.Context, locker *core.Locker) {
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		select {
		case r := <-l.lines:
			l.write(ctx, locker, r)
		default:
		}
	}
}

func (l *Log) write(ctx context.Context, locker *core.Locker, r refusal) {
	args := []any{
		"request_id", r.who.RequestID, "user", r.who.User, "at", r.at, "guard", r.event.Name, "reason", r.event.Reason, "status", r.event.Status,
	}
	if busy := (*core.BusyError)(nil); errors.As(r.event.Err, &busy) {
		args = append(args, "key", busy.Key)
		if lock, err := locker.Inspect(ctx, busy.Key); err == nil {
			args = append(args, "holder", lock.Owner) // empty: the lock is free by now
		}
	} else {
		args = append(args, "error", r.event.Err)
	}
	if n := l.omitted.Swap(0); n > 0 {
		args = append(args, "omitted", n)
	}
	l.logger.InfoContext(ctx, "a request was refused", args...)
}
