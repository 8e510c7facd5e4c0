package conformance_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// shop takes orders, once for each key of a user.
type shop struct {
	http.Handler
	*harness
	runs atomic.Int64
}

var byUser = keyfunc.Header("X-User")

// shop is a server behind Idempotent; cfg is nil for its short form.
func (h *harness) shop(cfg *guard.Idempotency, handle http.HandlerFunc, opts ...core.Option) *shop {
	return h.shopWith(func(r *route) {
		if cfg != nil {
			cfg.Scope = byUser
			r.guards = []guarding{{config: &config{idempotent: cfg, options: opts}}}
		} else {
			r.guards = idempotent(byUser, opts...)
		}
	}, handle)
}

func (h *harness) shopWith(change func(*route), handle http.HandlerFunc) *shop {
	s := &shop{harness: h}
	counted := func(w http.ResponseWriter, r *http.Request) {
		n := s.runs.Add(1)
		w.Header().Set("X-Run", fmt.Sprint(n))
		handle(w, r)
	}
	var routes []route
	for _, method := range []string{"POST", "GET", "PUT"} {
		for _, pattern := range []string{"/orders", "/orders/{id}"} {
			r := route{method: method, pattern: pattern, handle: counted}
			change(&r)
			isThere := func(other route) bool { return other.method == r.method && other.pattern == r.pattern }
			if !slices.ContainsFunc(routes, isThere) {
				routes = append(routes, r)
			}
		}
	}
	s.Handler = h.build(routes...)
	return s
}

// order sends an order of user u7 with a key; more are header fields.
func (s *shop) order(key, body string, more ...string) *httptest.ResponseRecorder {
	return s.to("POST", "/orders", body, append([]string{"Idempotency-Key", key}, more...)...)
}

func (s *shop) to(method, path, body string, header ...string) *httptest.ResponseRecorder {
	return sendBody(context.Background(), s, method, path, strings.NewReader(body), append([]string{"X-User", "u7", "Content-Type", "application/json"}, header...)...)
}

func (s *shop) wantRuns(want int64) {
	s.Helper()
	if got := s.runs.Load(); got != want {
		s.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// wantReplay checks that an answer is the first one again.
func (s *shop) wantReplay(first, again *httptest.ResponseRecorder) {
	s.Helper()
	if again.Code != first.Code || again.Body.String() != first.Body.String() {
		s.Fatalf("%d %.60q, want the first answer again: %d %.60q", again.Code, again.Body, first.Code, first.Body)
	}
	if again.Header().Get("Idempotent-Replayed") != "true" || first.Header().Get("Idempotent-Replayed") != "" {
		s.Errorf("Idempotent-Replayed is %q, of the first answer %q", again.Header().Get("Idempotent-Replayed"), first.Header().Get("Idempotent-Replayed"))
	}
}

// wantDraft checks a problem of an idempotent request, of which the draft says the title.
func (h *harness) wantDraft(w *httptest.ResponseRecorder, status int, title string) {
	h.Helper()
	h.wantStatus(w, status)
	var problem struct{ Type, Title, Detail, Code string }
	if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil {
		h.Fatalf("%v: %s", err, w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		h.Errorf("Content-Type %q", got)
	}
	if problem.Title != title || problem.Detail == "" || !strings.HasSuffix(problem.Type, "draft-ietf-httpapi-idempotency-key-header") {
		h.Errorf("%+v, want the title %q", problem, title)
	}
	codes := map[string]string{
		outstanding: "busy", alreadyUsed: "reused", missing: "missing", malformed: "malformed", notReplayable: "not_replayable", unknown: "outcome_unknown",
	}
	if problem.Code != codes[title] {
		h.Errorf("code %q of %q", problem.Code, title)
	}
	if retry := w.Header().Get("Retry-After"); (retry != "") != (title == outstanding) {
		h.Errorf("Retry-After %q", retry)
	}
}

const (
	outstanding   = "A request is outstanding for this Idempotency-Key"
	alreadyUsed   = "Idempotency-Key is already used"
	missing       = "Idempotency-Key is missing"
	malformed     = "Idempotency-Key is malformed"
	notReplayable = "The answer is not replayable"
	unknown       = "The outcome of an earlier request is unknown"
)

// paid answers an order.
func paid(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h := w.Header()
	h.Set("Content-Type", "application/vnd.order+json")
	h.Set("Location", "/orders/42")
	h.Add("Link", "</a>; rel=a")
	h.Add("Link", "</b>; rel=b")
	h.Set("Set-Cookie", "session=secret")
	h.Set("WWW-Authenticate", "Basic")
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, "{\"order\": %q}\n", body)
}

// What Stripe documents (https://docs.stripe.com/api/idempotent_requests) and what the draft
// (draft-ietf-httpapi-idempotency-key-header-07) asks for, and where we differ on purpose.
var idempotentCases = []conformanceCase{
	{"Stripe: a later request with the key gets the status and body of the first", func(h *harness) {
		s := h.shop(nil, paid)
		first := s.order("k", `{"a": 1}`)
		h.wantStatus(first, http.StatusCreated)
		for range 3 {
			s.wantReplay(first, s.order("k", `{"a": 1}`))
		}
		s.wantRuns(1)
	}},
	{"Stripe: errors of the request, such as a card that is declined, are stored as well", func(h *harness) {
		for _, code := range []int{402, 404, 410, 422} {
			s := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) })
			key := fmt.Sprint(code)
			s.wantReplay(s.order(key, ""), s.order(key, ""))
			s.wantRuns(1)
		}
	}},
	{"not as Stripe: an error of 500 or more is not stored, nor what may be right next time", func(h *harness) {
		for _, code := range []int{400, 401, 403, 409, 429, 500, 503} {
			s := h.shop(nil, status(code))
			key := fmt.Sprint(code)
			h.wantStatus(s.order(key, "a"), code)
			h.wantStatus(s.order(key, "b"), code) // it is as if the first had not come
			s.wantRuns(2)
		}
	}},
	{"Stripe: keys are kept for 24 hours, from the end of the request on", func(h *harness) {
		s := h.shop(nil, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour)
			paid(w, r)
		})
		first := s.order("k", "a")
		time.Sleep(24*time.Hour - time.Second)
		s.wantReplay(first, s.order("k", "a"))
		time.Sleep(time.Second)
		h.wantStatus(s.order("k", "b"), http.StatusCreated)
		s.wantRuns(2)
	}},
	{"Stripe, draft: the key with other parameters is refused, with 422, in flight too", func(h *harness) {
		entered, more := make(chan struct{}), make(chan struct{})
		s := h.shop(nil, func(w http.ResponseWriter, r *http.Request) {
			close(entered)
			<-more
			paid(w, r)
		})
		done := make(chan *httptest.ResponseRecorder)
		go func() { done <- s.order("k", "a") }()
		<-entered
		others := func() {
			h.Helper()
			h.wantDraft(s.order("k", "b"), http.StatusUnprocessableEntity, alreadyUsed)
			h.wantDraft(s.to("PUT", "/orders", "a", "Idempotency-Key", "k"), http.StatusUnprocessableEntity, alreadyUsed)
			h.wantDraft(s.to("POST", "/orders/42", "a", "Idempotency-Key", "k"), http.StatusUnprocessableEntity, alreadyUsed)
			h.wantDraft(s.to("POST", "/orders?a=b", "a", "Idempotency-Key", "k"), http.StatusUnprocessableEntity, alreadyUsed)
			h.wantDraft(s.order("k", "a", "Content-Type", "text/plain"), http.StatusUnprocessableEntity, alreadyUsed)
		}
		others()
		close(more)
		first := <-done
		others()
		s.wantReplay(first, s.order("k", "a", "User-Agent", "another"))
		s.wantRuns(1)
	}},
	{"Stripe: a request is refused while another with its key is processed, and can be repeated", func(h *harness) {
		more := make(chan struct{})
		s := h.shop(nil, func(w http.ResponseWriter, r *http.Request) {
			<-more
			paid(w, r)
		})
		done := make(chan *httptest.ResponseRecorder)
		go func() { done <- s.order("k", "a") }()
		synctest.Wait()
		began := time.Now()
		w := s.order("k", "a")
		h.wantDraft(w, http.StatusConflict, outstanding) // the draft: 409
		if d := time.Since(began); d > 0 {
			h.Errorf("the refusal took %v", d)
		}
		if got := w.Header().Get("Retry-After"); got != "1" {
			h.Errorf("Retry-After %q", got)
		}
		close(more)
		s.wantReplay(<-done, s.order("k", "a"))
		s.wantRuns(1)
	}},
	{"Stripe: a key has up to 255 characters; draft: it may be quoted, which is the same key", func(h *harness) {
		s := h.shop(nil, paid)
		for _, key := range []string{"k", strings.Repeat("k", 255), `back\slash`, `with"quote`, "!~"} {
			first := s.order(key, "a")
			h.wantStatus(first, http.StatusCreated)
			s.wantReplay(first, s.order(`"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key)+`"`, "a"))
		}
		s.wantRuns(5)
		for _, key := range []string{strings.Repeat("k", 256), `""`, `"`, `"a`, `"a"b"`, `"a\"`, `"a\b"`, "a b", `"a b"`, "é", "a\tb"} {
			h.wantDraft(s.order(key, "a"), http.StatusBadRequest, malformed)
		}
		h.wantProblem(s.order("k", "a", "Idempotency-Key", "k"), http.StatusBadRequest) // which of them?
		s.wantRuns(5)
	}},
	{"draft: a request without a key is refused with 400", func(h *harness) {
		s := h.shop(nil, paid)
		h.wantDraft(s.to("POST", "/orders", "a"), http.StatusBadRequest, missing)
		h.wantDraft(s.order("", "a"), http.StatusBadRequest, missing)
		s.wantRuns(0)
	}},
	{"Stripe: or, if keys are optional, is processed each time", func(h *harness) {
		s := h.shop(&guard.Idempotency{Optional: true}, paid)
		for range 2 {
			h.wantStatus(s.to("POST", "/orders", "a"), http.StatusCreated)
		}
		h.wantDraft(s.order("a b", "a"), http.StatusBadRequest, malformed)
		s.wantReplay(s.order("k", "a"), s.order("k", "a"))
		s.wantRuns(3)
	}},
	{"two users with one key have nothing to do with each other", func(h *harness) {
		s := h.shop(nil, paid)
		for i, user := range []string{"u1", "u2", "u1:k", `u1\`} {
			send := func() *httptest.ResponseRecorder {
				return sendBody(context.Background(), s, "POST", "/orders", strings.NewReader(user), "X-User", user, "Idempotency-Key", "k")
			}
			s.wantReplay(send(), send())
			s.wantRuns(int64(i) + 1)
		}
		// Without one the request is refused, even where keys are optional.
		for _, s := range []*shop{s, h.shop(&guard.Idempotency{Optional: true}, paid)} {
			h.wantProblem(sendBody(context.Background(), s, "POST", "/orders", nil, "Idempotency-Key", "k"), http.StatusBadRequest)
		}
		s.wantRuns(4)
	}},
	{"a scope that nobody has stored is a fault of the configuration", func(h *harness) {
		s := h.shopWith(func(r *route) { r.guards = idempotent(keyfunc.Value(h.valueKey("userID"))) }, paid)
		h.wantProblem(s.order("k", "a"), http.StatusInternalServerError)
		s = h.shopWith(func(r *route) {
			r.guards, r.outside = idempotent(keyfunc.Value(h.valueKey("userID"))), []companion{authenticating}
		}, paid)
		s.wantReplay(s.order("k", "a"), s.order("k", "a"))
	}},
	{"header fields that an answer needs are stored, those about one response are not", func(h *harness) {
		s := h.shopWith(func(r *route) {
			r.outside = []companion{identifying}
			r.guards = []guarding{{config: &config{idempotent: &guard.Idempotency{Scope: byUser, Headers: []string{"x-receipt"}}}}}
		}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Receipt", "7")
			w.Header().Set("ETag", `"e"`)
			w.Header().Set("X-Other", "o")
			paid(w, r)
			w.Header().Set("Location", "too late")
		})
		first := s.order("k", "a")
		again := s.order("k", "a")
		s.wantReplay(first, again)
		for _, field := range []string{"Content-Type", "Location", "Etag", "Link", "X-Receipt"} {
			got, want := again.Header()[field], first.Result().Header[field]
			if len(want) == 0 || strings.Join(got, "|") != strings.Join(want, "|") {
				h.Errorf("%s: %q, of the first %q", field, got, want)
			}
		}
		if again.Header().Get("X-Request-Id") == "" {
			h.Error("the header of middleware outside is missing")
		}
		for _, field := range []string{"Set-Cookie", "Www-Authenticate", "X-Other", "X-Run"} {
			if got := again.Header()[field]; got != nil {
				h.Errorf("%s: %q", field, got)
			}
		}
	}},
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
				w.(http.Flusher).Flush()
				_, _ = io.WriteString(w, "01234567890")
			},
			"controlled": func(w http.ResponseWriter, _ *http.Request) {
				_ = http.NewResponseController(w).Flush()
				_, _ = io.WriteString(w, "01234567890")
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
			r.guards = []guarding{{scope: byUser, onRefused: func(w http.ResponseWriter, _ *http.Request, err error) {
				code, _ := h.framework.reasonOf(err)
				codes = append(codes, code)
				_, _ = io.WriteString(w, "house style")
			}}}
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
			"Set-Cookie": {idempotent: &guard.Idempotency{Scope: byUser, Headers: []string{"set-cookie"}}},
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
		if text := report.String(); !strings.Contains(text, `by header "X-User" and header "Idempotency-Key" (idempotent)`) || report.Err() != nil {
			h.Errorf("%s\n%v", text, report.Err())
		}
	}},
}

// wantLogged checks that one line of the log has a text, and the name of the lock of a request with the key.
func (h *harness) wantLogged(text, key string) {
	h.Helper()
	sum := sha256.Sum256([]byte("X-User=u7:Idempotency-Key=" + key))
	if n := h.log.count(text + `" key=idempotent:` + hex.EncodeToString(sum[:])); n != 1 {
		h.Errorf("%d lines that say %q with the key", n, text)
	}
}

// deaf is the response of a client that has left.
type deaf struct{ *httptest.ResponseRecorder }

var errGone = errors.New("broken pipe")

func (*deaf) Write([]byte) (int, error)       { return 0, errGone }
func (*deaf) WriteString(string) (int, error) { return 0, errGone }
