//go:build go1.25

package httplock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/locktest"
)

// logBuffer is what is written by any goroutine.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// jsonLog has the lines of a message that a service writes as JSON.
func jsonLog(t *testing.T, message string) (lines func() []map[string]any) {
	var log logBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return func() (lines []map[string]any) {
		synctest.Wait()
		for text := range strings.Lines(log.String()) {
			var line map[string]any
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Error(err)
			}
			if line["msg"] == message {
				lines = append(lines, line)
			}
		}
		return lines
	}
}

// shows answers with all that a program of its own format may show.
func shows(w http.ResponseWriter, _ *http.Request, err error) {
	code, text := httplock.ReasonOf(err)
	fmt.Fprint(w, err, code, text, httplock.PartOf(err))
}

const inVain = "latchkey: a request has waited for its lock in vain"

// Who reads the log at night learns who is in the way, and the client learns nothing.
func TestTheLogSaysWhoIsInTheWay(t *testing.T) {
	host := core.Describe("shop-eu-3")
	me := func(holder string) bool { return strings.HasPrefix(holder, "shop-eu-3 (") }
	take := func(t *testing.T, l *core.Locker, opts ...core.Option) *core.Lock {
		k, err := l.TryLock(context.Background(), "orderID=s3cret", opts...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for state, c := range map[string]struct {
		takes func(t *testing.T, l *core.Locker) (release func())
		held  bool
		extra map[string]any
	}{
		"held": {func(t *testing.T, l *core.Locker) func() { return locktest.Hold(t, l, "orderID=s3cret") }, true, nil},
		"shared": {func(t *testing.T, l *core.Locker) func() {
			release := locktest.Hold(t, l, "orderID=s3cret", core.Shared())
			other := locktest.Hold(t, l, "orderID=s3cret", core.Shared())
			return func() { release(); other() }
		}, true, map[string]any{"holders": 2.0}},
		"permits": {func(t *testing.T, l *core.Locker) func() {
			return locktest.Hold(t, l, "orderID=s3cret", core.Permits(2))
		}, true, nil},
		"parked": {func(t *testing.T, l *core.Locker) func() {
			if _, err := take(t, l).Handover(context.Background(), time.Hour); err != nil {
				t.Fatal(err)
			}
			return func() {}
		}, false, nil},
		"dedup_window": {func(t *testing.T, l *core.Locker) func() {
			_ = take(t, l, core.KeepFor(time.Hour)).Unlock(context.Background())
			return func() {}
		}, false, nil},
		"attempt": {func(t *testing.T, l *core.Locker) func() {
			k := take(t, l, adapter.Attempt("0123456789abcdef", time.Hour, false))
			return func() { _ = k.Abort(context.Background()) }
		}, true, map[string]any{"attempt": 1.0}},
	} {
		t.Run(state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines := jsonLog(t, inVain)
				l := locktest.New(t, host)
				defer c.takes(t, l)()
				time.Sleep(2 * time.Second)
				mux := http.NewServeMux()
				mux.Handle("POST /orders/{orderID}", httplock.ByParam("orderID", httplock.Locker(l), core.Wait(3*time.Second))(http.NotFoundHandler()))
				mux.Handle("PUT /orders/{orderID}", httplock.ByParam("orderID", httplock.Locker(l), core.NoWait(), httplock.OnRefused(shows))(http.NotFoundHandler()))
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, httptest.NewRequest("POST", "/orders/s3cret", nil))
				mux.ServeHTTP(w, httptest.NewRequest("PUT", "/orders/s3cret", nil)) // its answer comes behind

				if len(lines()) != 1 {
					t.Fatalf("%d lines: %v", len(lines()), lines())
				}
				line := lines()[0]
				want := map[string]any{"key": "orderID=s3cret", "state": state, "waiting": 0.0, "route": "POST /orders/{orderID}"}
				for name, value := range c.extra {
					want[name] = value
				}
				for name, value := range want {
					if line[name] != value {
						t.Errorf("%s is %v; want %v", name, line[name], value)
					}
				}
				info, err := l.Inspect(context.Background(), "orderID=s3cret")
				isOwner := func(h core.Holder) bool { return h.Owner == line["owner"] }
				if err != nil || slices.ContainsFunc(info.Holders, isOwner) != c.held {
					t.Errorf("the owner is %v", line["owner"])
				}
				holder, _ := line["holder"].(string)
				if me(holder) != c.held || c.held && line["for"] != float64(5*time.Second) {
					t.Errorf("held by %q for %v", line["holder"], line["for"])
				}
				if by, _ := line["handed_over_by"].(string); me(by) != (state == "parked") {
					t.Errorf("handed over by %q", by)
				}
				for _, secret := range []string{"s3cret", "shop-eu", "holder", state} {
					if answer := fmt.Sprint(w.Header(), w.Body); w.Code != http.StatusConflict || strings.Contains(answer, secret) {
						t.Errorf("%d; the client hears of %q: %s", w.Code, secret, answer)
					}
				}
			})
		})
	}
}

// Redis is asked once a second for all guards of a Locker. Lines say what is known without: also that the work was done.
func TestTheLogAsksRedisOnceASecond(t *testing.T) {
	t.Run("held", func(t *testing.T) {
		asksOnceASecond(t, "held", nil, func(t *testing.T, l *core.Locker) { locktest.Hold(t, l, "orderID=42") })
	})
	t.Run("done", func(t *testing.T) {
		asksOnceASecond(t, "dedup_window", "dedup_window", func(t *testing.T, l *core.Locker) {
			if err := l.Do(context.Background(), "orderID=42", func(context.Context) error { return nil }, core.KeepFor(time.Hour)); err != nil {
				t.Error(err)
			}
		})
	})
}

func asksOnceASecond(t *testing.T, asked, unasked any, takes func(*testing.T, *core.Locker)) {
	synctest.Test(t, func(t *testing.T) {
		lines := jsonLog(t, inVain)
		l := locktest.New(t)
		takes(t, l)
		wait := func(d time.Duration) {
			mux := http.NewServeMux()
			mux.Handle("POST /orders/{orderID}", httplock.ByParam("orderID", httplock.Locker(l), core.Wait(d))(http.NotFoundHandler()))
			mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/orders/42", nil))
		}
		for _, d := range []time.Duration{4 * time.Second, 3000 * time.Millisecond, 3500 * time.Millisecond} {
			go wait(d)
		}
		time.Sleep(10 * time.Second)
		for i, state := range []any{asked, unasked, asked} {
			line := lines()[i]
			if _, told := line["waiting_processes"]; told != (i != 1) || line["state"] != state || line["key"] != "orderID=42" || line["waiting"] != float64(2-i) {
				t.Errorf("line %d: %v; want %v", i, line, state)
			}
		}
	})
}

// In a storm each line says who is in the way, also one that tells of many requests; and the last comes although the Locker is
// closed meanwhile: then without what it would have to ask.
func TestEachLineOfAStormSaysWhoIsInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := jsonLog(t, inVain)
		l := locktest.New(t, core.Describe("shop-eu-3"))
		release := locktest.Hold(t, l, "orderID=42")
		mux := http.NewServeMux()
		mux.Handle("POST /orders/{orderID}", httplock.ByParam("orderID", httplock.Locker(l))(http.NotFoundHandler()))
		const seconds, each = 5, 20
		for range seconds * each {
			go mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/orders/42", nil))
			time.Sleep(time.Second / each)
		}
		time.Sleep(3*time.Second - time.Millisecond) // when all have waited, and the last line is not due
		release()
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		before := len(lines())
		time.Sleep(time.Second)
		told := 0
		for i, line := range lines() {
			omitted, _ := line["omitted"].(float64)
			told += 1 + int(omitted)
			holder, _ := line["holder"].(string)
			if i < before && (line["state"] != "held" || !strings.HasPrefix(holder, "shop-eu-3 (")) {
				t.Errorf("line %d: %v", i, line)
			}
		}
		if told != seconds*each || before < seconds || len(lines()) != before+1 {
			t.Errorf("%d lines, and %d later, tell of %d requests; want %d", before, len(lines())-before, told, seconds*each)
		}
	})
}
