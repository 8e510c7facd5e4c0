package conformance_test

import (
	"context"
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
