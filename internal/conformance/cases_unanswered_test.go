package conformance_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
)

// endsEarly are the ways in which the context of a request is over before its handler has returned.
var endsEarly = map[string]func(server http.Handler, r *http.Request){
	"deadline": func(server http.Handler, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		server.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
	},
	"gone": func(server http.Handler, r *http.Request) {
		ctx, leave := context.WithCancel(r.Context())
		time.AfterFunc(time.Second, leave)
		server.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
	},
	"TimeoutHandler": func(server http.Handler, r *http.Request) {
		returned := make(chan struct{})
		http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(returned)
			server.ServeHTTP(w, r)
		}), time.Second, "too slow").ServeHTTP(httptest.NewRecorder(), r)
		<-returned
	},
}

// keyed is a request of user u7.
func keyed(path, key string) *http.Request {
	r := httptest.NewRequest("POST", path, strings.NewReader("a"))
	r.Header.Set("X-User", "u7")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	return r
}

// A handler that returns without a word when its time is over has succeeded for nobody.
var unansweredCases = []conformanceCase{
	{"KeepFor: nothing written and the request's context over: no window opens", func(h *harness) {
		for name, early := range endsEarly {
			server := h.build(h.working(func(_ http.ResponseWriter, r *http.Request) error {
				<-r.Context().Done()
				synctest.Wait()
				return nil
			}))
			early(server, keyed("/"+name, "k"))
			h.wantWindow("id="+name, false)
		}
	}},
	{"Idempotent: nothing written after MaxHold: the outcome is unknown", func(h *harness) {
		var attempts []int
		s := h.shop(nil, func(_ http.ResponseWriter, r *http.Request) {
			attempts = append(attempts, h.framework.attempt(r.Context()))
			<-r.Context().Done()
		}, core.MaxHold(time.Minute))
		s.order("k", "a")
		s.order("k", "a")
		if fmt.Sprint(attempts) != "[1 2]" {
			h.Errorf("attempts %v", attempts)
		}
	}},
	{"KeepFor: a status that was written decides, whatever has become of the request's context", func(h *harness) {
		for name, early := range endsEarly {
			for _, code := range []int{http.StatusOK, http.StatusNoContent, http.StatusBadRequest} {
				server := h.build(h.working(func(w http.ResponseWriter, r *http.Request) error {
					<-r.Context().Done()
					synctest.Wait()
					w.WriteHeader(code)
					return nil
				}))
				id := key(name, fmt.Sprint(code))
				early(server, keyed("/"+id, "k"))
				h.wantWindow("id="+id, code < 400)
			}
		}
	}},
	{"Idempotent: nothing written and the request's context over: the outcome is unknown", func(h *harness) {
		for name, early := range endsEarly {
			for _, refuse := range []bool{false, true} {
				h.log.reset()
				var attempts []int
				s := h.shop(&guard.Idempotency{RefuseUnknown: refuse}, func(w http.ResponseWriter, r *http.Request) {
					attempts = append(attempts, h.framework.attempt(r.Context()))
					if len(attempts) == 1 {
						<-r.Context().Done()
						synctest.Wait()
						return
					}
					paid(w, r)
				})
				id := key(name, fmt.Sprint(refuse))
				early(s, keyed("/orders", id))
				h.wantLogged("an answer was not stored, so that the outcome of the request is unknown", id)
				began := time.Now()
				again := s.order(id, "a")
				if time.Since(began) > 0 {
					h.Errorf("%s: the repetition has waited", name)
				}
				if refuse {
					h.wantDraft(again, http.StatusConflict, unknown)
					s.wantRuns(1)
					continue
				}
				h.wantStatus(again, http.StatusCreated)
				s.wantReplay(again, s.order(id, "a"))
				if fmt.Sprint(attempts) != "[1 2]" {
					h.Errorf("%s: attempts %v", name, attempts)
				}
			}
		}
	}},
	{"Idempotent: an answer that was written when the request's context was over is stored", func(h *harness) {
		for name, early := range endsEarly {
			for what, write := range map[string]func(http.ResponseWriter, *http.Request){
				"status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
				"body":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "paid") },
				"flush":  func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
			} {
				if what == "flush" && name == "TimeoutHandler" {
					continue // which cannot
				}
				s := h.shop(nil, func(w http.ResponseWriter, r *http.Request) {
					if h.framework.attempt(r.Context()) > 1 {
						return
					}
					<-r.Context().Done()
					synctest.Wait()
					write(w, r)
				})
				id := key(name, what)
				early(s, keyed("/orders", id))
				if again := s.order(id, "a"); again.Code != http.StatusOK || again.Header().Get("Idempotent-Replayed") != "true" {
					h.Errorf("%s: %d", id, again.Code)
				}
				s.wantRuns(1)
			}
		}
	}},
	{"Idempotent: an error of the handler is an answer, whatever has become of the request's context", func(h *harness) {
		if !h.framework.hasErrors {
			return
		}
		for name, early := range endsEarly {
			var attempts []int
			s := h.shopWith(func(r *route) {
				r.guards = idempotent(byUser)
				handle := r.handle
				r.work = func(w http.ResponseWriter, r *http.Request) error {
					handle(w, r)
					<-r.Context().Done()
					synctest.Wait()
					return r.Context().Err()
				}
			}, func(_ http.ResponseWriter, r *http.Request) {
				attempts = append(attempts, h.framework.attempt(r.Context()))
			})
			for range 2 {
				early(s, keyed("/orders", name))
			}
			if fmt.Sprint(attempts) != "[1 1]" {
				h.Errorf("%s: attempts %v", name, attempts)
			}
		}
	}},
}
