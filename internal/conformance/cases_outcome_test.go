package conformance_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Which answers are stored, and which outcomes free the key.
var outcomeCases = []conformanceCase{
	{"any body is stored byte for byte, and any answer without one", func(h *harness) {
		for name, handle := range map[string]http.HandlerFunc{
			"nothing":    func(http.ResponseWriter, *http.Request) {},
			"no content": status(http.StatusNoContent),
			"redirect":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/orders/42", http.StatusSeeOther) },
			"bytes":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("\x00\n\xff")) },
			"several writes": func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "a")
				_, _ = w.Write([]byte("b"))
			},
			"read from": func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.Copy(w, strings.NewReader(strings.Repeat("a", 10_000)))
			},
			"as long as may be": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 64<<10)) },
			"two statuses":      func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a"); w.WriteHeader(500) },
		} {
			s := h.shop(nil, handle)
			s.wantReplay(s.order(key(name), ""), s.order(key(name), ""))
			s.wantRuns(1)
		}
	}},
	{"too long, streamed or hijacked: the first client gets all of it, later ones 409", func(h *harness) {
		for name, handle := range map[string]http.HandlerFunc{
			"long":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 11)) },
			"read from": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("12345678901")) },
			"long header": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/"+strings.Repeat("a", 64<<10))
				_, _ = io.WriteString(w, "01234567890"[:10])
			},
			"by and by": func(w http.ResponseWriter, _ *http.Request) {
				for range 11 {
					_, _ = io.WriteString(w, "a")
				}
			},
			"streamed": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "Text/Event-Stream; charset=utf-8")
				_, _ = io.WriteString(w, "0123456789")
			},
		} {
			s := h.shop(&guard.Idempotency{MaxBytes: 10}, handle)
			if w := s.order(key(name), ""); w.Body.Len() < 10 || w.Code != http.StatusOK {
				h.Errorf("%s: %d, %d bytes", name, w.Code, w.Body.Len())
			}
			for range 2 {
				h.wantDraft(s.order(key(name), ""), http.StatusConflict, notReplayable)
			}
			h.wantDraft(s.order(key(name), "b"), http.StatusUnprocessableEntity, alreadyUsed)
			s.wantRuns(1)
		}
	}},
	{"a panic frees the key, unless an answer of success had begun", func(h *harness) {
		s := h.shop(nil, func(http.ResponseWriter, *http.Request) { panic("boom") })
		for range 2 {
			h.panics(func() { s.order("k", "a") })
		}
		s.wantRuns(2)
		s = h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "pa")
			panic(http.ErrAbortHandler)
		})
		if v := h.panics(func() { s.order("begun", "a") }); v != http.ErrAbortHandler {
			h.Errorf("the panic is %v", v)
		}
		h.wantDraft(s.order("begun", "a"), http.StatusConflict, notReplayable)
		s.wantRuns(1)
	}},
	{"an error of the handler is answered, and stored if its status is", func(h *harness) {
		if h.framework.httpError == nil {
			return
		}
		for code, runs := range map[int]int64{http.StatusUnprocessableEntity: 1, http.StatusTeapot: 2, http.StatusInternalServerError: 2} {
			failures := 0
			s := h.shopWith(func(r *route) {
				r.guards = idempotent(byUser)
				handle := r.handle
				r.handle = nil
				r.work = func(w http.ResponseWriter, request *http.Request) error {
					handle(w, request)
					return h.framework.httpError(code, "no")
				}
				r.failed = func(error) { failures++ }
			}, func(http.ResponseWriter, *http.Request) {})
			key := fmt.Sprint(code)
			first := s.order(key, "")
			h.wantStatus(first, code)
			again := s.order(key, "")
			if s.wantRuns(runs); runs == 1 {
				s.wantReplay(first, again)
			}
			if failures != int(runs) {
				h.Errorf("%d: middleware outside has seen %d errors of %d", code, failures, runs)
			}
			if !strings.Contains(first.Body.String(), "no") || strings.Count(first.Body.String(), "message") > 1 {
				h.Errorf("%d: %q", code, first.Body)
			}
		}
	}},
	{"an error that is answered outside frees the key", func(h *harness) {
		if h.framework.name != "gin" {
			return
		}
		s := h.shopWith(func(r *route) {
			r.guards = idempotent(byUser)
			handle := r.handle
			r.work = func(w http.ResponseWriter, request *http.Request) error {
				handle(w, request)
				return errors.New("no")
			}
		}, func(http.ResponseWriter, *http.Request) {})
		s.order("k", "a")
		s.order("k", "a")
		s.wantRuns(2)
	}},
	{"a guard inside that refuses has the key freed, whatever is stored", func(h *harness) {
		s := h.shopWith(func(r *route) {
			all := &guard.Idempotency{Scope: byUser, StoreIf: func(int) bool { return true }}
			r.guards = append([]guarding{{config: &config{idempotent: all}}}, byKey(keyfunc.Header("X-Order"), core.NoWait())...)
		}, paid)
		held := h.hold("X-Order=7")
		h.wantProblem(s.order("k", "a", "X-Order", "7"), http.StatusConflict)
		h.unlock(held)
		s.wantReplay(s.order("k", "a", "X-Order", "7"), s.order("k", "a", "X-Order", "7"))
		s.wantRuns(1)
	}},
	{"Idempotent inside of Idempotent is a fault of the set-up", func(h *harness) {
		s := h.shopWith(func(r *route) { r.guards = append(idempotent(byUser), idempotent(byUser)...) }, paid)
		h.wantProblem(s.order("k", "a"), http.StatusInternalServerError)
		s.wantRuns(0)
		if h.log.count("leave one of them out") == 0 {
			h.Error("the log does not say how to fix it")
		}
	}},
	{"DropWindow: a handler that has failed, whatever it answers, frees the key", func(h *harness) {
		s := h.shop(nil, func(w http.ResponseWriter, r *http.Request) {
			lock, _ := core.FromContext(r.Context())
			lock.DropWindow()
			_, _ = io.WriteString(w, `{"error": "no"}`)
		})
		h.wantStatus(s.order("k", "a"), http.StatusOK)
		h.wantStatus(s.order("k", "a"), http.StatusOK)
		s.wantRuns(2)
	}},
	{"StoreIf says which answers are stored; none of 500 or more is", func(h *harness) {
		for code, runs := range map[int]int64{200: 2, 418: 1, 500: 2} {
			s := h.shop(&guard.Idempotency{StoreIf: func(status int) bool { return status >= 400 }}, status(code))
			for range 2 {
				h.wantStatus(s.order(fmt.Sprint(code), ""), code)
			}
			s.wantRuns(runs)
		}
	}},
}
