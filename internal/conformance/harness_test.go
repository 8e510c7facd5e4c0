package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

// conformanceCase is one promise, tried with each framework.
type conformanceCase struct {
	promise string
	run     func(h *harness)
}

// subjects are all cases. Those in bubbles have a clock of their own, in which an
// hour passes at once; sockets do not work there. Each case has a Redis of its own.
var subjects = []struct {
	name     string
	onSocket bool
	cases    []conformanceCase
}{
	{"Exclusion", false, exclusionCases},
	{"Keys", false, keyCases},
	{"Names of path parameters", false, paramCases},
	{"Paths", false, pathCases},
	{"One namespace for all keys", false, namespaceCases},
	{"Keys from JSON bodies", false, jsonCases},
	{"Several keys", false, severalCases},
	{"Dedup windows", false, keepforCases},
	{"Idempotent requests", false, idempotentCases},
	{"Requests that are not answered", false, unansweredCases},
	{"Answers that are written past the guard", false, pastCases},
	{"The header of an answer that is sent again", false, headerCases},
	{"Outcomes of idempotent requests", false, outcomeCases},
	{"Attempts at idempotent requests", false, attemptCases},
	{"Which request has come before", false, comparedCases},
	{"What makes two requests one", false, fingerprintCases},
	{"What is stored of answers", false, storedCases},
	{"Answers that have begun", false, answerCases},
	{"Handlers", false, handlerCases},
	{"Contexts that are used again", false, reuseCases},
	{"Outages and set-up", false, outageCases},
	{"Log", false, logCases},
	{"Configuration", false, configCases},
	{"What guards have in common", false, withCases},
	{"Shared access", false, sharedCases},
	{"Permits", false, permitCases},
	{"Locks that are handed over", false, handoverCases},
	{"Releases in the background", false, backgroundCases},
	{"Check", false, checkCases},
	{"Refusals", false, refusalCases},
	{"Reasons of refusals", false, reasonCases},
	{"Parts that refusals name", false, partCases},
	{"Observers", false, observerCases},
	{"Real server: streams and bodies", true, streamCases},
	{"Real server: stored answers", true, idempotentServerCases},
	{"Real server: flushes and trailers of stored answers", true, flushCases},
	{"Bodies before the lock", false, bodyCases},
	{"Real server: clients", true, clientCases},
	{"Real server: clients that would rather have it failed", true, resetCases},
	{"Real server: other middleware", true, companionCases},
	{"Real server: contexts that are used again", true, lateCases},
}

// harness is what a case works with.
type harness struct {
	*testing.T
	framework framework
	locker    *core.Locker // the default one
	log       *logBuffer   // what was logged by slog's default logger
}

func (h *harness) build(routes ...route) http.Handler { return h.framework.build(routes...) }

func TestConformance(t *testing.T) {
	var table strings.Builder
	for _, subject := range subjects {
		fmt.Fprintf(&table, "\n\n%-84s", subject.name)
		for _, f := range frameworks {
			fmt.Fprintf(&table, " %-9s", f.name)
		}
		for _, c := range subject.cases {
			fmt.Fprintf(&table, "\n  %-82s", c.promise)
			for _, f := range frameworks {
				passed := t.Run(c.promise+"/"+f.name, func(t *testing.T) {
					if subject.onSocket {
						c.runWith(t, f)
					} else {
						synctest.Test(t, func(t *testing.T) { c.runWith(t, f) })
					}
				})
				fmt.Fprintf(&table, " %-9s", map[bool]string{true: "ok", false: "FAIL"}[passed])
			}
		}
	}
	t.Log(table.String())
}

func (c conformanceCase) runWith(t *testing.T, f framework) {
	h := &harness{T: t, framework: f, locker: locktest.New(t), log: captureLog(t)}
	core.SetDefault(h.locker)
	t.Cleanup(func() { core.SetDefault(nil) })
	c.run(h)
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) count(s string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.buf.String(), s)
}

func (b *logBuffer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Reset()
}

func captureLog(t *testing.T) *logBuffer {
	b := &logBuffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(ofRequests{slog.NewTextHandler(b, nil)}))
	t.Cleanup(func() { slog.SetDefault(before) })
	return b
}

// send sends a request and returns the answer.
func send(handler http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	return sendWith(context.Background(), handler, method, target, header...)
}

func sendWith(ctx context.Context, handler http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	return sendBody(ctx, handler, method, target, nil, header...)
}

// sendBody sends a body; its length is unknown to the server unless the reader is
// of a type that tells it.
func sendBody(ctx context.Context, handler http.Handler, method, target string, body io.Reader, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, target, body)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func (h *harness) wantStatus(w *httptest.ResponseRecorder, status int) {
	h.Helper()
	if w.Code != status {
		h.Fatalf("status %d, want %d; body %q", w.Code, status, w.Body)
	}
}

// wantProblem checks a refusal: status, Retry-After, and a body that says nothing
// about the key or Redis.
func (h *harness) wantProblem(w *httptest.ResponseRecorder, status int, secrets ...string) {
	h.Helper()
	h.wantStatus(w, status)
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		h.Errorf("Content-Type %q", got)
	}
	var problem struct {
		Type, Title, Detail, Code string
		Status                    int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil {
		h.Fatalf("the body is not JSON: %v: %q", err, w.Body)
	}
	if problem.Status != status || problem.Type != "about:blank" || problem.Title == "" || problem.Code == "" {
		h.Errorf("problem %+v", problem)
	}
	for _, s := range append(secrets, "redis", "lock:", "core:", "keyfunc:", "dial", "127.0.0.1") {
		if strings.Contains(strings.ToLower(w.Body.String()), strings.ToLower(s)) {
			h.Errorf("the body tells the client about %q: %s", s, w.Body)
		}
	}
	wantRetry := status == http.StatusConflict || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if got := w.Header().Get("Retry-After"); (got != "" && got != "0") != wantRetry {
		h.Errorf("Retry-After %q with status %d", got, status)
	}
}

// isFree reports whether the lock of key is free in Redis.
func (h *harness) isFree(key string) bool {
	h.Helper()
	info, err := h.locker.Inspect(context.Background(), key)
	if err != nil {
		h.Fatal(err)
	}
	return !info.Locked
}

// hold takes a lock as a stranger would.
func (h *harness) hold(key string, opts ...core.Option) *core.Lock {
	h.Helper()
	k, err := h.locker.Lock(context.Background(), key, opts...)
	if err != nil {
		h.Fatal(err)
	}
	return k
}

func (h *harness) unlock(k *core.Lock) {
	h.Helper()
	if err := k.Unlock(context.Background()); err != nil {
		h.Fatal(err)
	}
}

// overlap counts how many are inside at once.
type overlap struct {
	mu          sync.Mutex
	inside, max int
	runs        int
}

func (o *overlap) enter() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inside++
	o.runs++
	o.max = max(o.max, o.inside)
}

func (o *overlap) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inside--
}

// unreachable is a Locker whose Redis refuses connections.
func unreachable(h *harness) *core.Locker {
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379",
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		},
	})
	locker, err := core.New(client)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		_ = locker.Close(context.Background())
		_ = client.Close()
	})
	return locker
}

// lockerWith is a Locker with other defaults.
func (h *harness) lockerWith(opts ...core.Option) *core.Locker { return locktest.New(h, opts...) }

func (h *harness) holdOn(locker *core.Locker, key string) *core.Lock {
	h.Helper()
	k, err := locker.Lock(context.Background(), key)
	if err != nil {
		h.Fatal(err)
	}
	return k
}

func goexit(http.ResponseWriter, *http.Request) { runtime.Goexit() }
