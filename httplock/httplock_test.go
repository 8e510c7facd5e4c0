//go:build go1.25

package httplock_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// What all adapters have in common is tested in internal/conformance. Here is
// what only net/http has.

type middleware = func(http.Handler) http.Handler

// inBubble runs f with a default Locker, and returns what was logged.
func inBubble(t *testing.T, f func(t *testing.T, locker *core.Locker, log *bytes.Buffer)) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		t.Cleanup(func() { slog.SetDefault(before) })
		locker := locktest.New(t)
		core.SetDefault(locker)
		t.Cleanup(func() { core.SetDefault(nil) })
		f(t, locker, &log)
	})
}

func post(handler http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("POST", target, nil))
	return w
}

// tellKey answers with the key of the lock that it is called under.
func tellKey(w http.ResponseWriter, r *http.Request) {
	if k, held := core.FromContext(r.Context()); held {
		_, _ = io.WriteString(w, k.Key())
	}
}

// Without a dedup window the handler gets the ResponseWriter itself, with one it
// gets one that can do the same.
func TestResponseWriterKeepsItsInterfaces(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		locker := locktest.New(t)
		var outside http.ResponseWriter
		handler := func(opts ...core.Option) http.Handler {
			lock := httplock.New(httplock.Config{Locker: locker, Key: keyfunc.Query("id"), Options: opts})
			guarded := lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if len(opts) == 0 && w != outside {
					t.Errorf("http2 %v: the writer is wrapped", http2)
				}
				if got, want := interfaces(w), interfaces(outside); !reflect.DeepEqual(got, want) {
					t.Errorf("http2 %v: %v, want %v", http2, got, want)
				}
			}))
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				outside = w
				guarded.ServeHTTP(w, r)
			})
		}
		mux := http.NewServeMux()
		mux.Handle("/plain", handler())
		mux.Handle("/window", handler(core.KeepFor(time.Minute)))
		server := httptest.NewUnstartedServer(mux)
		server.EnableHTTP2 = http2
		server.StartTLS()
		for _, path := range []string{"/plain?id=1", "/window?id=2"} {
			response, err := server.Client().Get(server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			if response.Body.Close(); response.StatusCode != 200 || (response.ProtoMajor == 2) != http2 {
				t.Errorf("%s over %s", response.Status, response.Proto)
			}
		}
		server.Close()
	}
}

func interfaces(w http.ResponseWriter) map[string]bool {
	has := map[string]bool{}
	_, has["Flusher"] = w.(http.Flusher)
	_, has["Hijacker"] = w.(http.Hijacker)
	_, has["Pusher"] = w.(http.Pusher)
	_, has["ReaderFrom"] = w.(io.ReaderFrom)
	_, has["CloseNotifier"] = w.(interface{ CloseNotify() <-chan bool })
	return has
}

// A dedup window depends on the status that the client gets, not on one that came
// too late.
func TestFirstStatusCounts(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"flush":     func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"write":     func(w http.ResponseWriter) { _, _ = io.WriteString(w, "paid") },
		"read from": func(w http.ResponseWriter) { _, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("paid")) },
		"upgrade":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusSwitchingProtocols) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
				lock := httplock.ByQuery("id", core.KeepFor(time.Minute))
				handler := lock(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					answer(w)
					w.WriteHeader(http.StatusInternalServerError)
				}))
				w := httptest.NewRecorder()
				handler.ServeHTTP(struct {
					*httptest.ResponseRecorder
					io.ReaderFrom
				}{w, w.Body}, httptest.NewRequest("POST", "/?id=1", nil))
				if info, err := locker.Inspect(t.Context(), "id=1"); err != nil || !info.Locked {
					t.Errorf("no dedup window after a success: %+v, %v", info, err)
				}
			})
		})
	}
}

// Middleware outside of everything finds the pattern in its request, as it does
// without a lock.
func TestPatternIsFoundOutside(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *core.Locker, _ *bytes.Buffer) {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /orders/{orderID}", tellKey)
		server := httplock.ByQuery("id")(mux)
		r := httptest.NewRequest("POST", "/orders/42?id=1", nil)
		server.ServeHTTP(httptest.NewRecorder(), r)
		if r.Pattern != "POST /orders/{orderID}" {
			t.Errorf("pattern %q", r.Pattern)
		}
	})
}

// hears is an Observer.
type hears func(core.Event)

func (f hears) Observe(ctx context.Context, e core.Event) context.Context {
	f(e)
	return ctx
}

func TestObserversHearOfABadSetup(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *core.Locker, _ *bytes.Buffer) {
		var heard []core.Event
		core.SetDefault(locktest.New(t, core.Observe(hears(func(e core.Event) { heard = append(heard, e) }))))
		around := httplock.ByParam("orderID")(http.NewServeMux())
		if w := post(around, "/orders/42"); w.Code != http.StatusInternalServerError {
			t.Errorf("status %d", w.Code)
		}
		if len(heard) != 1 || heard[0].Kind != core.EventRefused || heard[0].Reason != "setup" || heard[0].Name != "orderID" ||
			heard[0].Status != http.StatusInternalServerError || heard[0].Err == nil {
			t.Errorf("heard %+v", heard)
		}
	})
}
