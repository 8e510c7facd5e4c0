package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var cases = []conformanceCase{
	{"requests with one key run one at a time", func(h *harness) {
		var o overlap
		server := h.build(post("/orders/{orderID}/pay", byParam("orderID"), o.slow(10*time.Millisecond)))
		h.sendAll(server, 20, func(int) string { return "/orders/42/pay" }, http.StatusOK)
		if o.max != 1 || o.runs != 20 {
			h.Errorf("%d ran, up to %d at once", o.runs, o.max)
		}
		if !h.isFree("orderID=42") {
			h.Error("the lock was not released")
		}
	}},
	{"requests with different keys run at the same time", func(h *harness) {
		var o overlap
		server := h.build(post("/orders/{orderID}/pay", byParam("orderID"), o.slow(time.Second)))
		h.sendAll(server, 20, func(i int) string { return fmt.Sprintf("/orders/%d/pay", i) }, http.StatusOK)
		if o.max != 20 {
			h.Errorf("up to %d at once, want 20", o.max)
		}
	}},
	{"routes with the same parameter exclude each other", func(h *harness) {
		var o overlap
		server := h.build(
			post("/orders/{orderID}/pay", byParam("orderID"), o.slow(10*time.Millisecond)),
			post("/orders/{orderID}/cancel", byParam("orderID"), o.slow(10*time.Millisecond)))
		h.sendAll(server, 10, func(i int) string {
			return "/orders/42/" + []string{"pay", "cancel"}[i%2]
		}, http.StatusOK)
		if o.max != 1 {
			h.Errorf("up to %d at once", o.max)
		}
	}},
	{"the key names the part: orderID=42, X-User=7, q=x", func(h *harness) {
		server := h.build(
			post("/orders/{orderID}", byParam("orderID"), h.wantsHeld("orderID=42")),
			post("/header", []guarding{{header: "x-user"}}, h.wantsHeld("X-User=7")),
			post("/query", []guarding{{query: "q"}}, h.wantsHeld("q=x")))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		h.wantStatus(send(server, "POST", "/header", "X-User", "7"), http.StatusOK)
		h.wantStatus(send(server, "POST", "/query?q=x"), http.StatusOK)
	}},
	{"unmatched routes and methods get the router's own answer", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID"), ok))
		h.wantStatus(send(server, "POST", "/nothing"), http.StatusNotFound)
		h.wantStatus(send(server, "GET", "/orders/42"), http.StatusMethodNotAllowed)
	}},
	{"a route without the parameter passes, with one warning", func(h *harness) {
		server := h.build(post("/health", byParam("orderID"), ok))
		for range 3 {
			h.wantStatus(send(server, "POST", "/health"), http.StatusOK)
		}
		if n := h.log.count("does not declare the parameter"); n != 1 {
			h.Errorf("%d warnings, want 1", n)
		}
	}},
	{"a busy lock: 409 after the wait of 3 s", func(h *harness) {
		defer h.unlock(h.hold("orderID=secret42"))
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		started := time.Now()
		h.wantProblem(send(server, "POST", "/orders/secret42"), http.StatusConflict, "secret42")
		if took := time.Since(started); took != 3*time.Second {
			h.Errorf("waited %v", took)
		}
	}},
	{"a busy lock with NoWait: 409 at once", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.NoWait()), h.never()))
		started := time.Now()
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusConflict)
		if took := time.Since(started); took > 100*time.Millisecond {
			h.Errorf("waited %v", took)
		}
	}},
	{"the Locker's own Wait counts where the middleware says nothing", func(h *harness) {
		locker := h.lockerWith(core.Wait(10 * time.Second))
		core.SetDefault(locker)
		defer h.unlock(h.holdOn(locker, "orderID=42"))
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		started := time.Now()
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusConflict)
		if took := time.Since(started); took != 10*time.Second {
			h.Errorf("waited %v", took)
		}
	}},
	{"more than 256 waiting requests: 409 at once", func(h *harness) {
		k := h.hold("orderID=42")
		var o overlap
		server := h.build(post("/orders/{orderID}", byParam("orderID"), o.slow(0)))
		var crowd sync.WaitGroup
		for range 256 {
			crowd.Go(func() { send(server, "POST", "/orders/42") })
		}
		synctest.Wait()
		started := time.Now()
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusConflict)
		if took := time.Since(started); took != 0 {
			h.Errorf("waited %v", took)
		}
		h.unlock(k)
		crowd.Wait()
		if o.runs != 256 {
			h.Errorf("%d ran, want 256", o.runs)
		}
	}},
	{"KeepFor: 409 after a success, Retry-After is the rest of the window", func(h *harness) {
		var o overlap
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute), core.NoWait()), o.slow(10*time.Second)))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		w := send(server, "POST", "/orders/42")
		h.wantProblem(w, http.StatusConflict)
		if got := w.Header().Get("Retry-After"); got != "50" {
			h.Errorf("Retry-After %q, want 50", got)
		}
		time.Sleep(51 * time.Second)
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
	}},
	{"KeepFor: a status of 400 or more frees the key at once", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute)), status(http.StatusBadRequest)))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusBadRequest)
		if !h.isFree("orderID=42") {
			h.Error("the key is still taken")
		}
	}},
	{"KeepFor: an error of the handler frees the key at once", func(h *harness) {
		failing := post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute)), func(http.ResponseWriter, *http.Request) {})
		failing.fail = errors.New("no")
		send(h.build(failing), "POST", "/orders/42")
		if h.framework.hasErrors && !h.isFree("orderID=42") {
			h.Error("the key is still taken")
		}
	}},
	{"KeepFor: a panic frees the key at once", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute)), func(http.ResponseWriter, *http.Request) { panic("boom") }))
		h.panics(func() { send(server, "POST", "/orders/42") })
		if !h.isFree("orderID=42") {
			h.Error("the key is still taken")
		}
	}},
	{"a part missing, empty, given twice or malformed: 400", func(h *harness) {
		server := h.build(
			post("/header", []guarding{{header: "X-User"}}, h.never()),
			post("/query", []guarding{{query: "q"}}, h.never()),
			post("/int", []guarding{{key: keyfunc.Int(keyfunc.Query("q"))}}, h.never()))
		h.wantProblem(send(server, "POST", "/header"), http.StatusBadRequest)
		h.wantProblem(send(server, "POST", "/header", "X-User", ""), http.StatusBadRequest)
		h.wantProblem(send(server, "POST", "/header", "X-User", "secret1", "X-User", "secret2"), http.StatusBadRequest, "secret")
		h.wantProblem(send(server, "POST", "/query?q=1&q=2"), http.StatusBadRequest)
		h.wantProblem(send(server, "POST", "/int?q=secret"), http.StatusBadRequest, "secret")
	}},
	{"a key of more than 1,024 bytes: 400", func(h *harness) {
		server := h.build(post("/header", []guarding{{header: "X-User"}}, h.never()))
		h.wantProblem(send(server, "POST", "/header", "X-User", strings.Repeat("x", 1025)), http.StatusBadRequest, "xxx")
	}},
	{"Optional: a request without the part runs without a lock", func(h *harness) {
		server := h.build(post("/query", []guarding{{key: keyfunc.Optional(keyfunc.Query("q"))}}, ok))
		h.wantStatus(send(server, "POST", "/query"), http.StatusOK)
	}},
	{"no default Locker: 500, and the log says how to mend it", func(h *harness) {
		core.SetDefault(nil)
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusInternalServerError)
		if h.log.count("SetDefault") != 1 {
			h.Error("the log does not say how to mend it")
		}
	}},
	{"the default Locker may be set after the middleware is built", func(h *harness) {
		core.SetDefault(nil)
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.wantsHeld("orderID=42")))
		core.SetDefault(h.locker)
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
	}},
	{"Redis unreachable: 503, and nothing runs", func(h *harness) {
		core.SetDefault(unreachable(h))
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusServiceUnavailable)
	}},
	{"Redis unreachable, FailOpen: the handler runs without a lock", func(h *harness) {
		cfg := &config{locker: unreachable(h), key: keyfunc.Param("orderID"), failOpen: true}
		server := h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, ok))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		if h.log.count("FailOpen") == 0 {
			h.Error("nothing was logged")
		}
	}},
	{"FailOpen does not open a busy lock", func(h *harness) {
		defer h.unlock(h.hold("42"))
		cfg := &config{key: keyfunc.Param("orderID"), failOpen: true}
		server := h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, h.never()))
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusConflict)
	}},
	{"Locker closed: 503", func(h *harness) {
		if err := h.locker.Close(context.Background()); err != nil {
			h.Fatal(err)
		}
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusServiceUnavailable)
	}},
	{"client gone while waiting: nothing runs, nothing is answered", func(h *harness) {
		k := h.hold("orderID=42")
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		w := sendWith(ctx, server, "POST", "/orders/42")
		if w.Body.Len() > 0 {
			h.Errorf("answered %q", w.Body)
		}
		h.unlock(k)
		synctest.Wait()
		if !h.isFree("orderID=42") {
			h.Error("the lock is held for nobody")
		}
	}},
	{"the request's own deadline ends the wait: 409", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		h.wantProblem(sendWith(ctx, server, "POST", "/orders/42"), http.StatusConflict)
	}},
	{"client gone while the handler runs: the lock is kept until it returns", func(h *harness) {
		ctx, cancel := context.WithCancel(context.Background())
		server := h.build(post("/orders/{orderID}", byParam("orderID"), func(http.ResponseWriter, *http.Request) {
			cancel()
			time.Sleep(time.Hour)
			if h.isFree("orderID=42") {
				h.Error("the lock was let go while the handler ran")
			}
		}))
		sendWith(ctx, server, "POST", "/orders/42")
		if !h.isFree("orderID=42") {
			h.Error("the lock was not released")
		}
	}},
	{"a panic goes on unchanged, also http.ErrAbortHandler", func(h *harness) {
		for _, value := range []any{"boom", http.ErrAbortHandler} {
			server := h.build(post("/orders/{orderID}", byParam("orderID"), func(http.ResponseWriter, *http.Request) { panic(value) }))
			if got := h.panics(func() { send(server, "POST", "/orders/42") }); got != value {
				h.Errorf("panicked with %v, want %v", got, value)
			}
			if !h.isFree("orderID=42") {
				h.Error("the lock was not released")
			}
		}
	}},
	{"runtime.Goexit releases the lock", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID"), goexit))
		var exited sync.WaitGroup
		exited.Go(func() { send(server, "POST", "/orders/42") })
		exited.Wait()
		if !h.isFree("orderID=42") {
			h.Error("the lock was not released")
		}
	}},
	{"the handler's context carries ownership: a nested lock re-enters", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID"), func(_ http.ResponseWriter, r *http.Request) {
			err := h.locker.Do(r.Context(), "orderID=42", func(context.Context) error { return nil }, core.NoWait())
			if err != nil {
				h.Error(err)
			}
		}))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
	}},
	{"the same middleware twice does not wait for itself", func(h *harness) {
		server := h.build(post("/orders/{orderID}", append(byParam("orderID"), byParam("orderID")...), ok))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
	}},
	{"the handler's context ends with ErrLost when the lock is lost", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID"), func(_ http.ResponseWriter, r *http.Request) {
			if _, err := h.locker.ForceUnlock(r.Context(), "orderID=42"); err != nil {
				h.Error(err)
			}
			<-r.Context().Done()
			if cause := context.Cause(r.Context()); !errors.Is(cause, core.ErrLost) {
				h.Errorf("cause %v", cause)
			}
		}))
		send(server, "POST", "/orders/42")
	}},
	{"the middleware outside keeps a context that is not cancelled", func(h *harness) {
		r := post("/orders/{orderID}", byParam("orderID"), ok)
		r.around = func(next func(), request func() *http.Request) {
			next()
			if err := request().Context().Err(); err != nil {
				h.Errorf("afterwards the request's context is done: %v", err)
			}
			if _, held := core.FromContext(request().Context()); held {
				h.Error("afterwards the request still owns the lock")
			}
		}
		h.wantStatus(send(h.build(r), "POST", "/orders/42"), http.StatusOK)
	}},
	{"Skip lets a request through without a lock", func(h *harness) {
		defer h.unlock(h.hold("42"))
		cfg := &config{key: keyfunc.Param("orderID"), options: []core.Option{core.NoWait()}, skip: func(r *http.Request) bool {
			return r.Header.Get("X-Skip") != ""
		}}
		server := h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, ok))
		h.wantStatus(send(server, "POST", "/orders/42", "X-Skip", "1"), http.StatusOK)
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusConflict)
	}},
	{"OnRefused answers instead, and sees the cause", func(h *harness) {
		defer h.unlock(h.hold("42"))
		cfg := &config{key: keyfunc.Param("orderID"), options: []core.Option{core.NoWait()}, onRefused: func(w http.ResponseWriter, err error) {
			if !errors.Is(err, core.ErrNotAcquired) {
				h.Errorf("error %v", err)
			}
			w.WriteHeader(http.StatusTeapot)
		}}
		server := h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, h.never()))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusTeapot)
	}},
	{"Status answers a busy lock in place of 409", func(h *harness) {
		defer h.unlock(h.hold("42"))
		cfg := &config{key: keyfunc.Param("orderID"), options: []core.Option{core.NoWait()}, status: http.StatusTooManyRequests}
		server := h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, h.never()))
		w := send(server, "POST", "/orders/42")
		h.wantStatus(w, http.StatusTooManyRequests)
		if w.Header().Get("Retry-After") == "" {
			h.Error("no Retry-After")
		}
	}},
	{"bad set-up panics with a sentence", func(h *harness) {
		for name, g := range map[string]guarding{
			"empty parameter": {},
			"nil key":         {config: &config{}},
			"bad option":      {param: "orderID", options: []core.Option{core.Lease(-1)}},
			"shared owner":    {param: "orderID", options: []core.Option{core.Owner("me")}},
			"option of New":   {param: "orderID", options: []core.Option{core.Prefix("x")}},
			"no error status": {config: &config{key: keyfunc.Param("x"), status: 200}},
		} {
			if got := h.panics(func() { h.build(post("/orders/{orderID}", []guarding{g}, ok)) }); got == nil {
				h.Errorf("%s: no panic", name)
			}
		}
	}},
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// never is a handler that must not run.
func (h *harness) never() http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) { h.Error("the handler ran") }
}

// wantsHeld is a handler that wants its lock to be held.
func (h *harness) wantsHeld(key string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h.isFree(key) {
			h.Errorf("the handler runs, but %q is not held", key)
		}
		if k, held := core.FromContext(r.Context()); !held || k.Key() != key {
			h.Errorf("the context does not hold %q", key)
		}
	}
}

// slow is a handler that takes d.
func (o *overlap) slow(d time.Duration) http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) {
		o.enter()
		defer o.leave()
		time.Sleep(d)
	}
}

func (h *harness) sendAll(server http.Handler, n int, target func(i int) string, want int) {
	var crowd sync.WaitGroup
	answers := make([]*httptest.ResponseRecorder, n)
	for i := range n {
		crowd.Go(func() { answers[i] = send(server, "POST", target(i)) })
	}
	crowd.Wait()
	for _, w := range answers {
		h.wantStatus(w, want)
	}
}

// panics runs f and returns what it panicked with.
func (h *harness) panics(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	h.Error("no panic")
	return nil
}
