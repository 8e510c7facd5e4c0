package conformance_test

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// places puts a companion outside of the guards, and inside.
func places(r route, name companion, f func(where string, r route)) {
	outside, inside := r, r
	outside.outside = append(outside.outside, name)
	inside.inside = append(inside.inside, name)
	f("outside", outside)
	f("inside", inside)
}

var companionCases = []conformanceCase{
	{"gzip outside and inside: answers and refusals are readable", func(h *harness) {
		h.bothWays(func(window bool, opts ...core.Option) {
			r := post("/{id}", byParam("id", opts...), func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "paid") })
			places(r, gzipping, func(where string, r route) {
				s := h.serve(h.build(r))
				id := key(where, fmt.Sprint(window))
				w := s.post("/"+id, "Accept-Encoding", "gzip")
				h.wantStatus(w, http.StatusOK)
				if h.unzip(w); w.Body.String() != "paid" {
					h.Errorf("%s: body %q", where, w.Body)
				}
				h.wantWindow("id="+id, window)

				busy := key("busy", id)
				defer h.unlock(h.hold("id=" + busy))
				w = s.post("/"+busy, "Accept-Encoding", "gzip")
				if w.Header().Get("Content-Encoding") != "" {
					h.unzip(w)
				}
				h.wantProblem(w, http.StatusConflict)
			})
		})
	}},
	{"gzip outside and inside: KeepFor sees the status of a failure", func(h *harness) {
		for name, fail := range map[string]http.HandlerFunc{
			"without a body": status(http.StatusInternalServerError),
			"with a body": func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, "failed")
			},
		} {
			places(post("/{id}", byParam("id", core.KeepFor(time.Hour)), fail), gzipping, func(where string, r route) {
				id := key(where, name)
				h.wantStatus(h.serve(h.build(r)).post("/"+id, "Accept-Encoding", "gzip"), http.StatusInternalServerError)
				h.wantWindow("id="+id, false)
			})
		}
	}},
	{"recover outside and inside: a panic is a 500 of theirs, without a window", func(h *harness) {
		h.bothWays(func(window bool, opts ...core.Option) {
			r := post("/{id}", byParam("id", opts...), func(http.ResponseWriter, *http.Request) { panic("boom") })
			places(r, recovering, func(where string, r route) {
				id := key(where, fmt.Sprint(window))
				h.wantStatus(h.serve(h.build(r)).post("/"+id), http.StatusInternalServerError)
				h.wantWindow("id="+id, false)
			})
		})
	}},
	{"request ID and logger outside: refusals have the one and are in the other", func(h *harness) {
		defer h.unlock(h.hold("id=1"))
		r := post("/{id}", byParam("id", core.NoWait()), h.never())
		r.outside = []companion{logging, identifying}
		w := h.serve(h.build(r)).post("/1")
		h.wantProblem(w, http.StatusConflict)
		if w.Header().Get("X-Request-Id") == "" {
			h.Error("no X-Request-Id")
		}
		if h.log.count("status 409")+h.log.count("status=409")+h.log.count("| 409 |") == 0 {
			h.Error("the logger has not seen the status")
		}
	}},
	{"http.TimeoutHandler inside: its 503 is the end, also for the lock", func(h *harness) {
		h.bothWays(func(window bool, opts ...core.Option) {
			told := make(chan struct{})
			slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				close(told)
			})
			id := fmt.Sprint(window)
			s := h.serve(h.build(post("/{id}", byParam("id", opts...), http.TimeoutHandler(slow, 50*time.Millisecond, "too slow").ServeHTTP)))
			h.wantStatus(s.post("/"+id), http.StatusServiceUnavailable)
			h.receive(told, "the handler to be told")
			h.wantWindow("id="+id, false)
		})
	}},
}
