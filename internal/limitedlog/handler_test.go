//go:build go1.25

package limitedlog_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/internal/limitedlog"
)

// panicking is a handler that panics when a line says so.
type panicking struct{ slog.Handler }

func (h panicking) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "panic") {
		panic("boom")
	}
	return h.Handler.Handle(ctx, r)
}

// A handler that panics costs the line, which is counted, also where a timer's goroutine writes it.
func TestAPanicCostsALine(t *testing.T) {
	bubble(t, func(t *testing.T, l *limitedlog.Log, w *written) {
		logger := slog.New(panicking{l.Logger().Handler()})
		l.Logger = func() *slog.Logger { return logger }
		for range 3 {
			l.Limited(background, slog.LevelWarn, "panic")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		l.Limited(background, slog.LevelDebug, "is not enabled")
		lose(l, "a")
		l.Each(background, slog.LevelWarn, "another")
		w.want(t, "then", `{"key":"a","msg":"latchkey: lost","unwritten_lines":2,"why":"of a"}`, `{"msg":"latchkey: another"}`)
	})
}

// A line that waits for its turn has the time at which it was logged, and one that has none is counted.
func TestPutWritesLater(t *testing.T) {
	bubble(t, func(t *testing.T, l *limitedlog.Log, _ *written) {
		lines := new(times)
		logger := slog.New(lines)
		l.Logger = func() *slog.Logger { return logger }
		var later []func()
		l.Put = func(write func()) bool { later = append(later, write); return len(later) < 3 }
		began := time.Now()
		for range 3 {
			l.Each(background, slog.LevelWarn, "line")
			time.Sleep(time.Second)
		}
		if lines.at != nil {
			t.Error("a line was written at once")
		}
		for _, write := range later[:2] {
			write()
		}
		if want := []time.Time{began, began.Add(time.Second)}; !slices.EqualFunc(lines.at, want, time.Time.Equal) || lines.attrs != 1 {
			t.Errorf("lines of %v, with %d attributes", lines.at, lines.attrs)
		}
	})
}

// times has those of its lines.
type times struct {
	slog.Handler
	at    []time.Time
	attrs int
}

func (*times) Enabled(context.Context, slog.Level) bool { return true }
func (h *times) Handle(_ context.Context, r slog.Record) error {
	h.at, h.attrs = append(h.at, r.Time), h.attrs+r.NumAttrs()
	return nil
}
