package conformance_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing/synctest"
	"time"

	echo4 "github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/core"
)

// Once an answer has begun its status alone says whether the work was done.
var answerCases = []conformanceCase{
	{"KeepFor: an error after an answer of success changes nothing", func(h *harness) {
		server := h.build(h.working(func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, "paid")
			return errors.New("the client has gone")
		}))
		send(server, "POST", "/1")
		h.wantWindow("id=1", true)
	}},
	{"KeepFor: an error after an answer of failure changes nothing", func(h *harness) {
		server := h.build(h.working(func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "no")
			return errors.New("no")
		}))
		send(server, "POST", "/1")
		h.wantWindow("id=1", false)
	}},
	{"KeepFor: a panic after an answer of success keeps the window, and goes on unchanged", func(h *harness) {
		for id, value := range map[string]any{"1": "boom", "2": http.ErrAbortHandler} {
			server := h.build(h.working(func(w http.ResponseWriter, _ *http.Request) error {
				_, _ = io.WriteString(w, "paid")
				panic(value)
			}))
			if got := h.panics(func() { send(server, "POST", "/"+id) }); got != value {
				h.Errorf("panicked with %v, want %v", got, value)
			}
			h.wantWindow("id="+id, true)
		}
	}},
	{"KeepFor: a panic after an answer of failure frees the key", func(h *harness) {
		server := h.build(h.working(func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "no")
			panic("boom")
		}))
		h.panics(func() { send(server, "POST", "/1") })
		h.wantWindow("id=1", false)
	}},
	{"KeepFor: an answer that a flush has begun is a success, whatever follows", func(h *harness) {
		for name, outside := range map[string][]companion{"plain": nil, "logged": {logging}} {
			for end, ended := range endings {
				r := h.working(func(w http.ResponseWriter, _ *http.Request) error {
					if err := http.NewResponseController(w).Flush(); err != nil {
						h.Errorf("%s: %v", name, err)
					}
					return ended(errors.New("the client has gone"))
				})
				r.outside = append([]companion{recovering}, outside...)
				func() {
					defer func() { _ = recover() }()
					send(h.build(r), "POST", "/"+key(name, end))
				}()
				h.wantWindow("id="+key(name, end), true)
			}
		}
	}},
	{"KeepFor: a status that is set before the first byte counts", func(h *harness) {
		for name, outside := range map[string][]companion{"plain": nil, "zipped": {gzipping}} {
			for _, written := range []bool{true, false} {
				r := h.working(func(w http.ResponseWriter, _ *http.Request) error {
					setStatus(w, http.StatusInternalServerError)
					if written {
						_, _ = io.WriteString(w, "not paid")
					}
					return nil
				})
				r.outside = outside
				id := key(name, fmt.Sprint(written))
				w := send(h.build(r), "POST", "/"+id)
				if written {
					h.wantStatus(w, http.StatusInternalServerError)
				}
				h.wantWindow("id="+id, false)
			}
		}
	}},
	{"KeepFor: a batch whose parts are refused has succeeded if it says so", func(h *harness) {
		var server http.Handler
		batch := post("/batches/{id}", byParam("id", core.NoWait(), core.KeepFor(time.Hour)), func(w http.ResponseWriter, r *http.Request) {
			for _, target := range []string{"/orders/42", "/orders/43?item=1"} {
				part := httptest.NewRequestWithContext(r.Context(), "POST", target, nil)
				server.ServeHTTP(httptest.NewRecorder(), part)
			}
			w.WriteHeader(http.StatusMultiStatus)
		})
		part := post("/orders/{orderID}", append(byParam("orderID", core.NoWait()), guarding{query: "item"}), ok)
		server = h.build(batch, part)
		defer h.unlock(h.hold("orderID=42"))
		h.wantStatus(send(server, "POST", "/batches/7"), http.StatusMultiStatus)
		h.wantWindow("id=7", true)
	}},
	{"a panic still tells where it came from", func(h *harness) {
		r := h.working(panicsFarInside)
		var stack string
		r.around = func(next func(), _ func() *http.Request) {
			defer func() {
				_ = recover()
				stack = string(debug.Stack())
			}()
			next()
		}
		send(h.build(r), "POST", "/1")
		if !strings.Contains(stack, "panicsFarInside") {
			h.Errorf("the stack has lost the handler:\n%s", stack)
		}
	}},
	{"http.TimeoutHandler outside, which makes each write fail: the work is still done", func(h *harness) {
		for name, end := range endings {
			inner := h.build(h.working(func(w http.ResponseWriter, r *http.Request) error {
				<-r.Context().Done()
				synctest.Wait() // until the time-out is answered
				return end(answerUntilItFails(h, w))
			}))
			returned := make(chan struct{})
			server := http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(returned)
				inner.ServeHTTP(w, r)
			}), time.Second, "too slow")
			h.wantStatus(send(server, "POST", "/"+name), http.StatusServiceUnavailable)
			<-returned
			h.wantWindow("id="+name, true)
		}
	}},
}

func panicsFarInside(w http.ResponseWriter, _ *http.Request) error {
	_, _ = io.WriteString(w, "paid")
	panic("boom")
}

// working is a route with a dedup window whose handler may return an error.
func (h *harness) working(work func(w http.ResponseWriter, r *http.Request) error) route {
	return route{
		method: http.MethodPost, pattern: "/{id}", work: work,
		guards: byParam("id", core.NoWait(), core.KeepFor(time.Hour)),
	}
}

// setStatus sets the status of an answer that has not begun, in the way of the framework.
func setStatus(w http.ResponseWriter, code int) {
	if r, ok := w.(*echo4.Response); ok {
		r.Status = code
	} else if r, err := echo5.UnwrapResponse(w); err == nil {
		r.Status = code
	} else {
		w.WriteHeader(code)
	}
}
