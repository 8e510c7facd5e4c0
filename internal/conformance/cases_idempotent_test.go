package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

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
		h.wantStatus(s.order(`"!~";v=1; a="b"`, "a"), http.StatusCreated) // parameters say nothing of the key
		s.wantRuns(5)
		for _, key := range []string{strings.Repeat("k", 256), `""`, `"`, `"a`, `"a"b"`, `"a";`, `"a" ;v=1`, `"";v=1`, `"a\"`, `"a\b"`, "a b", `"a b"`, "é", "a\tb"} {
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
}
