package conformance_test

import (
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

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
