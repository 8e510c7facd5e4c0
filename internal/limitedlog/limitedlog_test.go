//go:build go1.25

package limitedlog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/internal/limitedlog"
)

var background = context.Background()

// written has the lines of a log, as they are written.
type written struct {
	mu    sync.Mutex
	lines []map[string]any
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var line map[string]any
	err := json.Unmarshal(p, &line)
	delete(line, slog.TimeKey)
	delete(line, slog.LevelKey)
	w.lines = append(w.lines, line)
	return len(p), err
}

// take returns the lines, which the next one does not.
func (w *written) take() []map[string]any {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.lines
	w.lines = nil
	return lines
}

func (w *written) want(t *testing.T, when string, want ...string) {
	t.Helper()
	var got []string
	for _, line := range w.take() {
		text, _ := json.Marshal(line)
		got = append(got, string(text))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func bubble(t *testing.T, test func(t *testing.T, l *limitedlog.Log, w *written)) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{}
		test(t, &limitedlog.Log{Logger: func() *slog.Logger { return slog.New(slog.NewJSONHandler(w, nil)) }}, w)
	})
}

// told is of how many the lines tell.
func told(lines []map[string]any) int {
	n := len(lines)
	for _, line := range lines {
		omitted, _ := line["omitted"].(float64)
		n += int(omitted)
	}
	return n
}

func lose(l *limitedlog.Log, keys ...string) {
	for _, key := range keys {
		l.Limited(background, slog.LevelWarn, "lost", "key", key, "why", "of "+key)
	}
}

func TestWhatIsLeftOutComesTogetherWithinASecond(t *testing.T) {
	bubble(t, func(t *testing.T, l *limitedlog.Log, w *written) {
		lose(l, "a", "b", "c", "b", "d", "c")
		l.Limited(background, slog.LevelWarn, "another kind")
		w.want(t, "at once", `{"key":"a","msg":"latchkey: lost","why":"of a"}`, `{"msg":"latchkey: another kind"}`)
		time.Sleep(time.Second - 1)
		w.want(t, "before the second is over")
		time.Sleep(time.Nanosecond)
		w.want(t, "after a second", `{"key":"b","msg":"latchkey: lost","omitted":4,"omitted_keys":["c","d"],"why":"of b"}`)
		lose(l, "e")
		time.Sleep(time.Second - 1)
		w.want(t, "before the next second is over")
		time.Sleep(time.Nanosecond)
		w.want(t, "a line alone is as it would have been", `{"key":"e","msg":"latchkey: lost","why":"of e"}`)
		time.Sleep(time.Second)
		w.want(t, "when all is told")
		lose(l, "f")
		w.want(t, "later", `{"key":"f","msg":"latchkey: lost","why":"of f"}`)
	})
}

func TestOneLineASecondOfAStorm(t *testing.T) {
	bubble(t, func(t *testing.T, l *limitedlog.Log, w *written) {
		const seconds, each = 10, 100
		for range seconds * each {
			l.Limited(background, slog.LevelWarn, "storm")
			time.Sleep(time.Second / each)
		}
		time.Sleep(time.Second)
		lines := w.take()
		if n := told(lines); len(lines) > seconds+1 || n != seconds*each {
			t.Errorf("%d lines tell of %d; want %d at most, of %d", len(lines), n, seconds+1, seconds*each)
		}
	})
}

func TestKeysAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, l *limitedlog.Log, w *written) {
		const keys, bytes = 1000, 100
		for i := range keys + 2 {
			lose(l, fmt.Sprintf("%0*d", bytes, i))
		}
		time.Sleep(time.Second)
		line := w.take()[1]
		got := []any{line["omitted"], len(line["omitted_keys"].([]any)), line["more_keys"]}
		if want := []any{float64(keys), 8192 / bytes, float64(keys - 8192/bytes)}; !reflect.DeepEqual(got, want) {
			t.Errorf("%v; want %v", got, want)
		}
	})
}

func TestCloseLeavesNothingOut(t *testing.T) {
	bubble(t, func(t *testing.T, l *limitedlog.Log, w *written) {
		lose(l, "a", "b", "c")
		w.want(t, "at once", `{"key":"a","msg":"latchkey: lost","why":"of a"}`)
		l.Close()
		w.want(t, "closed", `{"key":"b","msg":"latchkey: lost","omitted":1,"omitted_keys":["c"],"why":"of b"}`)
		lose(l, "d", "e")
		w.want(t, "later", `{"key":"d","msg":"latchkey: lost","why":"of d"}`, `{"key":"e","msg":"latchkey: lost","why":"of e"}`)
		time.Sleep(time.Minute)
		w.want(t, "in the end")
	})
}

// fromContext is a handler that adds what the context has, as those for traces do.
type fromContext struct {
	slog.Handler
	t *testing.T
}

type requestKey struct{}

func (h fromContext) Handle(ctx context.Context, r slog.Record) error {
	if ctx.Err() != nil {
		h.t.Errorf("%s: the context has ended", r.Message)
	}
	r.AddAttrs(slog.Any("request", ctx.Value(requestKey{})))
	return h.Handler.Handle(ctx, r)
}

// What is written later goes to who was to have it: by then the lines of another one may be asked for.
func TestALineThatIsLeftOutHasTheLoggerOfItsTime(t *testing.T) {
	bubble(t, func(t *testing.T, l *limitedlog.Log, w *written) {
		lose(l, "a", "b")
		l.Logger = func() *slog.Logger { return slog.New(slog.DiscardHandler) }
		time.Sleep(time.Second)
		w.want(t, "after a second", `{"key":"a","msg":"latchkey: lost","why":"of a"}`, `{"key":"b","msg":"latchkey: lost","why":"of b"}`)
	})
}

func TestALineHasTheContextOfItsCall(t *testing.T) {
	bubble(t, func(t *testing.T, l *limitedlog.Log, w *written) {
		logger := slog.New(fromContext{l.Logger().Handler(), t})
		l.Logger = func() *slog.Logger { return logger }
		for _, request := range []string{"1", "2", "3"} {
			ctx, cancel := context.WithCancel(context.WithValue(background, requestKey{}, request))
			cancel()
			l.Limited(ctx, slog.LevelWarn, "limited")
			l.Each(ctx, slog.LevelWarn, "each")
		}
		w.want(t, "at once", `{"msg":"latchkey: limited","request":"1"}`, `{"msg":"latchkey: each","request":"1"}`,
			`{"msg":"latchkey: each","request":"2"}`, `{"msg":"latchkey: each","request":"3"}`)
		time.Sleep(time.Second)
		w.want(t, "after a second", `{"msg":"latchkey: limited","omitted":1,"request":"2"}`)
	})
}

func TestManyLogAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, l *limitedlog.Log, w *written) {
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() { lose(l, fmt.Sprint(i)) })
		}
		all.Go(l.Close)
		all.Wait()
		if n := told(w.take()); n != 50 {
			t.Errorf("%d lines are told; want 50", n)
		}
	})
}

// A line that is left out finds out more when it is written, and not when it is left out.
func TestALineIsCompletedWhenItIsWritten(t *testing.T) {
	bubble(t, func(t *testing.T, l *limitedlog.Log, w *written) {
		began := time.Now()
		finds := func(key string, takes time.Duration) {
			l.Completed(background, slog.LevelInfo, "waited", func(write func(more ...any)) {
				at := time.Since(began).String()
				if takes == 0 {
					write("found", at)
					return
				}
				time.AfterFunc(takes, func() { write("found", at) })
			}, "key", key)
		}
		finds("a", 0)
		finds("b", 100*time.Millisecond)
		finds("c", 0)
		w.want(t, "at once", `{"found":"0s","key":"a","msg":"latchkey: waited"}`)
		time.Sleep(time.Second + 99*time.Millisecond)
		w.want(t, "while more is found out")
		time.Sleep(time.Millisecond)
		w.want(t, "then", `{"found":"1s","key":"b","msg":"latchkey: waited","omitted":1,"omitted_keys":["c"]}`)
		finds("d", 0)
		l.Close()
		w.want(t, "closed", `{"found":"1.1s","key":"d","msg":"latchkey: waited"}`)
		finds("e", 0)
		w.want(t, "later", `{"found":"1.1s","key":"e","msg":"latchkey: waited"}`)
	})
}

// What nobody mends fills no log, and a new cause is told at once.
func TestRarelyIsOnceAMinuteForEachCause(t *testing.T) {
	bubble(t, func(t *testing.T, l *limitedlog.Log, w *written) {
		fails := func(cause string) {
			l.Rarely(background, slog.LevelWarn, "unheard", cause, "error", cause)
			time.Sleep(time.Second)
		}
		for range 60 {
			fails("EOF")
		}
		w.want(t, "the first minute", `{"error":"EOF","msg":"latchkey: unheard"}`)
		fails("EOF")
		w.want(t, "the second minute", `{"error":"EOF","msg":"latchkey: unheard"}`)
		fails("NOPERM")
		fails("EOF")
		w.want(t, "another cause", `{"error":"NOPERM","msg":"latchkey: unheard"}`)
	})
}
