package conformance_test

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
)

// What is kept of an answer, and that a repetition gets no other one.
var storedCases = []conformanceCase{
	{"a field that the handler has taken out of the header is not in that of a repetition", func(h *harness) {
		s := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Del("Content-Language")
			w.WriteHeader(http.StatusNoContent)
		})
		inside := s.Handler
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Language", "en")
			inside.ServeHTTP(w, r)
		})
		first, again := s.order("k", "a"), s.order("k", "a")
		s.wantReplay(first, again)
		if got := again.Result().Header["Content-Language"]; got != nil || first.Result().Header["Content-Language"] != nil {
			h.Errorf("Content-Language %q", got)
		}
	}},
	{"each byte of a header is stored, of whichever encoding", func(h *harness) {
		values := []string{"/caf\xe9", "/caf\u00e9", "/\xff\x80 \u2028<&>\u65e5"}
		s := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Link"] = values
			w.WriteHeader(http.StatusCreated)
		})
		for range 2 {
			if got := s.order("k", "a").Header()["Link"]; !reflect.DeepEqual(got, values) {
				h.Errorf("%q, want %q", got, values)
			}
		}
		s.wantRuns(1)
	}},
	{"an answer that says no is stored for an hour, and a long one not at all: it cannot fill Redis", func(h *harness) {
		for status, runs := range map[int]int64{201: 1, 402: 2, 422: 2} {
			s := h.shop(nil, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(status)
				_, _ = io.Copy(w, r.Body)
			})
			short := strings.Repeat("a", 4<<10)
			first := s.order(fmt.Sprint(status), short)
			time.Sleep(time.Hour - time.Second)
			s.wantReplay(first, s.order(fmt.Sprint(status), short))
			s.wantRuns(1)
			time.Sleep(time.Second)
			h.wantStatus(s.order(fmt.Sprint(status), short), status)
			s.wantRuns(runs)
			for range 2 {
				h.wantStatus(s.order(fmt.Sprint("long", status), short+"a"), status)
			}
			s.wantRuns(2 * runs)
		}
	}},
	{"an answer of more than 64 KiB is not kept, unless MaxBytes says so", func(h *harness) {
		for _, cfg := range []guard.Idempotency{{}, {MaxBytes: 64<<10 + 1}} {
			s := h.shop(&cfg, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 64<<10+1)) })
			key := fmt.Sprint(cfg.MaxBytes)
			first, again := s.order(key, "a"), s.order(key, "a")
			if cfg.MaxBytes > 0 {
				s.wantReplay(first, again)
			} else {
				h.wantDraft(again, http.StatusConflict, notReplayable)
			}
			s.wantRuns(1)
		}
	}},
	{"an answer that cannot be kept is told of, with the name of its lock", func(h *harness) {
		s := h.shop(nil, func(w http.ResponseWriter, r *http.Request) {
			lock, _ := core.FromContext(r.Context())
			if _, err := h.locker.ForceUnlock(h.Context(), lock.Key()); err != nil {
				h.Error(err)
			}
			paid(w, r)
		})
		h.wantStatus(s.order("k", "a"), http.StatusCreated)
		h.wantLogged("an answer was not stored, so that the outcome of the request is unknown", "k")
	}},
	{"a shorter StoreFor is that of all answers", func(h *harness) {
		s := h.shop(&guard.Idempotency{StoreFor: time.Minute}, status(http.StatusUnprocessableEntity))
		for range 2 {
			s.order("k", "a")
			time.Sleep(time.Minute)
		}
		s.wantRuns(2)
	}},
}
