package conformance_test

import (
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

var handlerCases = []conformanceCase{
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
	{"the middleware outside finds what the handler has set on the request", func(h *harness) {
		r := post("/orders/{orderID}", byParam("orderID"), func(w http.ResponseWriter, r *http.Request) {
			r.SetPathValue("found", "7")
			r.Pattern = "/found"
			r.MultipartForm = &multipart.Form{}
			r.Form = url.Values{"found": {"7"}}
		})
		r.around = func(next func(), request func() *http.Request) {
			body := request().Body
			next()
			r := request()
			if r.Pattern != "/found" || r.MultipartForm == nil {
				h.Errorf("afterwards the request has the pattern %q, form %v", r.Pattern, r.MultipartForm)
			}
			if h.framework.name != "net/http" && (r.PathValue("found") != "7" || r.Form == nil) { // there it is another one
				h.Errorf("afterwards the request has the path value %q, form %v", r.PathValue("found"), r.Form)
			}
			if r.Body != body {
				h.Error("afterwards the request has another body")
			}
		}
		w := sendBody(h.Context(), h.build(r), "POST", "/orders/42", io.MultiReader(strings.NewReader("x")))
		h.wantStatus(w, http.StatusOK)
	}},
	{"http.TimeoutHandler outside: 503, and the lock is held until the handler returns", func(h *harness) {
		finish := make(chan struct{})
		inner := h.build(post("/{id}", byParam("id", core.NoWait()), func(http.ResponseWriter, *http.Request) { <-finish }))
		returned := make(chan struct{}, 2)
		server := http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { returned <- struct{}{} }()
			inner.ServeHTTP(w, r)
		}), time.Second, "too slow")
		h.wantStatus(send(server, "POST", "/1"), http.StatusServiceUnavailable)
		if h.isFree("id=1") {
			h.Error("the lock is free while the handler runs")
		}
		h.wantProblem(send(server, "POST", "/1"), http.StatusConflict)
		<-returned // the refusal
		close(finish)
		<-returned
		h.wantWindow("id=1", false)
	}},
}
