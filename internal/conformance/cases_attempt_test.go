package conformance_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var attemptCases = []conformanceCase{
	{"with Wait a request waits for the answer of the first", func(h *harness) {
		s := h.shop(nil, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * time.Second)
			paid(w, r)
		}, core.Wait(5*time.Second))
		answers := make(chan *httptest.ResponseRecorder)
		for range 5 {
			go func() { answers <- s.order("k", "a") }()
		}
		var first *httptest.ResponseRecorder
		var again []*httptest.ResponseRecorder
		for range 5 {
			if w := <-answers; w.Header().Get("Idempotent-Replayed") == "" {
				first = w
			} else {
				again = append(again, w)
			}
		}
		if len(again) != 4 {
			h.Fatalf("%d replays", len(again))
		}
		for _, w := range again {
			s.wantReplay(first, w)
		}
		s.wantRuns(1)
	}},
	{"where the outcome of an attempt is unknown, the next has a number", func(h *harness) {
		for _, refuse := range []bool{false, true} {
			var attempts []int
			s := h.shop(&guard.Idempotency{RefuseUnknown: refuse}, func(w http.ResponseWriter, r *http.Request) {
				attempts = append(attempts, h.framework.attempt(r.Context()))
				if len(attempts) == 1 { // as if the process had died
					lock, _ := core.FromContext(r.Context())
					_ = lock.Unlock(r.Context())
				}
				paid(w, r)
			})
			key := fmt.Sprint(refuse)
			h.wantStatus(s.order(key, "a"), http.StatusCreated)
			again := s.order(key, "a")
			if refuse {
				h.wantDraft(again, http.StatusConflict, unknown)
				h.wantLogged("a request is refused, because the outcome of its last attempt is unknown", key)
				h.wantDraft(s.order(key, "b"), http.StatusUnprocessableEntity, alreadyUsed)
				s.wantRuns(1)
				continue
			}
			s.wantReplay(again, s.order(key, "a"))
			h.wantLogged("a request is processed again, because the outcome of its last attempt is unknown", key)
			if fmt.Sprint(attempts) != "[1 2]" {
				h.Errorf("attempts %v", attempts)
			}
		}
		if n := h.framework.attempt(context.Background()); n != 0 {
			h.Errorf("attempt %d without one", n)
		}
	}},
	{"a client that leaves gets the whole answer when it asks again", func(h *harness) {
		s := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			if n, err := io.Copy(w, strings.NewReader(strings.Repeat("a", 60_000))); n != 60_000 || err != nil {
				h.Errorf("%d bytes, %v", n, err)
			}
		})
		r := httptest.NewRequest("POST", "/orders", nil)
		r.Header.Set("X-User", "u7")
		r.Header.Set("Idempotency-Key", "k")
		r.Header.Set("Content-Type", "application/json")
		s.ServeHTTP(&deaf{httptest.NewRecorder()}, r)
		if w := s.order("k", ""); w.Body.Len() != 60_000 {
			h.Errorf("%d bytes", w.Body.Len())
		}
		s.wantRuns(1)
	}},
	{"Seal: what is stored cannot be read, nor used for another request", func(h *harness) {
		block, _ := aes.NewCipher(make([]byte, 32))
		seal, _ := cipher.NewGCM(block)
		s := h.shop(&guard.Idempotency{Seal: seal, MaxBytes: 100}, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, "secret"+string(body))
		})
		s.wantReplay(s.order("k", "a"), s.order("k", "a"))
		s.order("long", strings.Repeat("a", 101))
		h.wantDraft(s.order("long", strings.Repeat("a", 101)), http.StatusConflict, notReplayable)
		s.wantRuns(2)
		block, _ = aes.NewCipher([]byte(strings.Repeat("k", 32)))
		another, _ := cipher.NewGCM(block)
		for _, seal := range []cipher.AEAD{another, nil} { // its key has changed
			s := h.shop(&guard.Idempotency{Seal: seal}, paid)
			w := s.order("k", "a")
			h.wantDraft(w, http.StatusConflict, notReplayable)
			s.wantRuns(0)
		}
		if h.log.count("a stored answer cannot be read") == 0 {
			h.Error("the log does not tell of it")
		}
	}},
	{"a body of any length up to the limit is compared, and a longer one refused", func(h *harness) {
		s := h.shop(nil, paid)
		long := strings.Repeat("a", 1<<20)
		w := s.order("k", long)
		h.wantStatus(w, http.StatusCreated)
		if !strings.Contains(w.Body.String(), long) {
			h.Error("the handler has not read all of it")
		}
		h.wantDraft(s.order("k", long[1:]+"b"), http.StatusUnprocessableEntity, alreadyUsed)
		h.wantProblem(s.order("longer", long+"a"), http.StatusRequestEntityTooLarge)
		unknownLength := struct{ io.Reader }{strings.NewReader("a")}
		w = sendBody(context.Background(), s, "POST", "/orders", unknownLength, "X-User", "u7", "Idempotency-Key", "chunked")
		h.wantStatus(w, http.StatusCreated)
		w = sendBody(context.Background(), s, "POST", "/orders", struct{ io.Reader }{strings.NewReader("b")}, "X-User", "u7", "Idempotency-Key", "chunked")
		h.wantDraft(w, http.StatusUnprocessableEntity, alreadyUsed)
		s.wantRuns(2)
	}},
	{"in an outage no request is processed", func(h *harness) {
		s := h.shopWith(func(r *route) {
			r.guards = []guarding{{config: &config{idempotent: &guard.Idempotency{Scope: byUser}, locker: unreachable(h)}}}
		}, paid)
		h.wantProblem(s.order("k", "a"), http.StatusServiceUnavailable)
		s.wantRuns(0)
	}},
	{"OnRefused answers refusals, and no answer of an earlier request", func(h *harness) {
		var codes []string
		s := h.shopWith(func(r *route) {
			r.guards = idempotent(byUser, h.framework.onRefused(func(w http.ResponseWriter, _ *http.Request, err error) {
				code, _ := h.framework.reasonOf(err)
				codes = append(codes, code)
				_, _ = io.WriteString(w, "house style")
			}))
		}, paid)
		s.wantReplay(s.order("k", "a"), s.order("k", "a"))
		w := s.order("k", "b")
		h.wantStatus(w, http.StatusUnprocessableEntity)
		w = s.order("", "b")
		h.wantStatus(w, http.StatusBadRequest)
		if fmt.Sprint(codes) != "[reused missing]" || w.Body.String() != "house style" {
			h.Errorf("%v, %s", codes, w.Body)
		}
	}},
	{"Observers hear of an answer that is sent again, and of refusals", func(h *harness) {
		o := h.observe(core.EventBusy, core.EventFailed, core.EventRefused)
		s := h.shop(nil, paid)
		s.wantReplay(s.order("k", "a"), s.order("k", "a"))
		s.order("k", "b")
		o.want(h, "a replay, and another request", "X-User:Idempotency-Key answered 0", "X-User:Idempotency-Key reused 0", "X-User:Idempotency-Key reused 422")
	}},
	{"what cannot be combined with it is refused at set-up", func(h *harness) {
		one := &guard.Idempotency{Scope: byUser}
		for what, cfg := range map[string]*config{
			"FailOpen":   {idempotent: one, failOpen: true},
			"scope":      {idempotent: &guard.Idempotency{}},
			"Param":      {idempotent: one, param: "id"},
			"Shared":     {idempotent: one, shared: func(*http.Request) bool { return true }},
			"BufferBody": {idempotent: one, bufferBody: -1},
			"StoreFor":   {idempotent: &guard.Idempotency{Scope: byUser, StoreFor: time.Millisecond}},
			"idempotent": {idempotent: one, options: []core.Option{core.KeepFor(time.Minute)}},
			"MaxBytes":   {idempotent: &guard.Idempotency{Scope: byUser, MaxBytes: -1}},
		} {
			v := h.panics(func() { h.build(post("/orders", []guarding{{config: cfg}}, ok)) })
			if text, _ := v.(string); !strings.HasPrefix(text, h.framework.adapter+": ") || !strings.Contains(text, what) {
				h.Errorf("%s: %v", what, v)
			}
		}
	}},
	{"RouteCheck knows it", func(h *harness) {
		server := h.build(post("/orders", idempotent(byUser), ok)).(checkedServer)
		report, err := server.check()
		if err != nil {
			h.Fatal(err)
		}
		if text := report.String(); !strings.Contains(text, `by header "X-User" and header "Idempotency-Key" (idempotent, in a scope that clients choose`) || report.Err() != nil {
			h.Errorf("%s\n%v", text, report.Err())
		}
		for _, scope := range []keyfunc.Func[keyfunc.Request]{keyfunc.Value("userID"), keyfunc.Cookie("session"), keyfunc.Header("authorization"),
			keyfunc.Join(keyfunc.Header("X-Shop"), keyfunc.Value("userID"))} {
			if report, _ = h.build(post("/orders", idempotent(scope), ok)).(checkedServer).check(); strings.Contains(report.String(), "clients choose") {
				h.Errorf("%s", report)
			}
		}
	}},
}
