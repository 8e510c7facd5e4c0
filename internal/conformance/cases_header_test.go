package conformance_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// headerCases are about the fields of an answer that is sent again.
var headerCases = []conformanceCase{
	{"the fields of an answer are stored, except those of one connection or one answer", func(h *harness) {
		kept := http.Header{
			"Content-Type": {"application/pdf"}, "Content-Disposition": {"attachment; filename=\"receipt.pdf\""}, "Cache-Control": {"private, max-age=60"},
			"Vary": {"Accept", "Accept-Language"}, "X-Content-Type-Options": {"nosniff"}, "Content-Security-Policy": {"default-src 'none'"},
			"Content-Range": {"bytes 0-3/10"}, "Etag": {`"e"`}, "Expires": {"0"}, "Retry-After": {"5"}, "Location": {"/a"}, "X-Own": {"1", "2"},
			"Content-Length": {"4"}, "x-small": {"as it was set"},
		}
		dropped := http.Header{
			"Connection": {"X-Hop, close", "X-Hop-2"}, "X-Hop": {"1"}, "X-Hop-2": {"1"}, "Keep-Alive": {"timeout=5"}, "Proxy-Connection": {"close"}, "Te": {"trailers"},
			"Upgrade": {"h2c"}, "Set-Cookie": {"session=secret"}, "Www-Authenticate": {"Basic"}, "Authentication-Info": {"nextnonce=1"}, "Date": {"yesterday"}, "Age": {"7"},
			"set-cookie": {"session=another"}, http.TrailerPrefix + "Set-Cookie": {"session=late"},
		}
		s := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			for _, all := range []http.Header{kept, dropped} {
				for field, values := range all {
					w.Header()[field] = values
				}
			}
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "%PDF")
			w.Header().Set("X-Late", "1")
		})
		s.wantReplay(s.order("k", "a"), s.order("k", "a"))
		got := s.order("k", "a").Result().Header
		for field, values := range kept {
			if !reflect.DeepEqual(got[field], values) {
				h.Errorf("%s: %q, want %q", field, got[field], values)
			}
			delete(got, field)
		}
		delete(got, "Idempotent-Replayed")
		if delete(got, "X-Run"); len(got) > 0 {
			h.Errorf("fields that are of the first answer alone: %q", got)
		}
		s.wantRuns(1)
	}},
	{"what middleware outside has set is that of the repetition, unless the handler has changed it", func(h *harness) {
		s := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Vary", "Accept")
			w.Header().Set("X-Frame-Options", "SAMEORIGIN")
			w.Header().Del("X-Powered-By")
			w.WriteHeader(http.StatusCreated)
		})
		inside, n := s.Handler, 0
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n++
			w.Header().Set("X-Request-Id", strconv.Itoa(n))
			w.Header().Set("Trailer", "X-Trace")
			w.Header().Set("X-Trace", strconv.Itoa(n))
			w.Header().Set("Vary", "Origin")
			w.Header().Set("X-Frame-Options", "DENY")
			w.Header().Set("X-Powered-By", "go")
			w.Header().Set("Set-Cookie", "n="+strconv.Itoa(n))
			inside.ServeHTTP(w, r)
		})
		for i := 1; i <= 2; i++ {
			answer := s.order("k", "a").Result()
			if trace := answer.Trailer.Get("X-Trace"); trace != strconv.Itoa(i) {
				h.Errorf("%d: the trailer is %q", i, trace)
			}
			got := answer.Header
			for field, want := range map[string][]string{
				"X-Request-Id": {strconv.Itoa(i)}, "Set-Cookie": {"n=" + strconv.Itoa(i)},
				"Vary": {"Origin", "Accept"}, "X-Frame-Options": {"SAMEORIGIN"}, "X-Powered-By": nil,
			} {
				if !reflect.DeepEqual(got[field], want) {
					h.Errorf("%d: %s is %q, want %q", i, field, got[field], want)
				}
			}
		}
		s.wantRuns(1)
	}},
	{"no cache has an answer that is sent again, unless it says so itself; by a safe method never", func(h *harness) {
		for method, cases := range map[string]map[string]string{
			"POST": {"": "no-store", "private, max-age=60": "private, max-age=60"},
			"PUT":  {"": "no-store", "public": "public"},
			"GET":  {"": "no-store", "public, max-age=60": "no-store", "private": "no-store"},
		} {
			for own, want := range cases {
				s := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
					if own != "" {
						w.Header().Set("Cache-Control", own)
					}
					_, _ = io.WriteString(w, "paid")
				})
				id := key(method, strconv.Itoa(len(own)))
				send := func() *httptest.ResponseRecorder { return s.to(method, "/orders", "", "Idempotency-Key", id) }
				first, again := send(), send()
				s.wantReplay(first, again)
				if got := first.Header().Get("Cache-Control"); got != own {
					h.Errorf("%s %q: of the first answer %q", method, own, got)
				}
				if got := again.Header().Get("Cache-Control"); got != want {
					h.Errorf("%s %q: Cache-Control %q, want %q", method, own, got, want)
				}
			}
		}
	}},
	{"a flush ends no recording: what follows is sent again, too", func(h *harness) {
		for name, handle := range map[string]http.HandlerFunc{
			"first": func(w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush()
				_, _ = io.WriteString(w, "paid in full")
			},
			"controlled": func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "paid ")
				_ = http.NewResponseController(w).Flush()
				_, _ = io.WriteString(w, "in full")
			},
			"last": func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(w, "paid in full")
				w.(http.Flusher).Flush()
			},
			"status": func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusAccepted)
				w.(http.Flusher).Flush()
				_, _ = io.WriteString(w, "paid in full")
			},
		} {
			s := h.shop(&guard.Idempotency{}, handle)
			first := s.order(name, "a")
			if first.Body.String() != "paid in full" || !first.Flushed {
				h.Errorf("%s: %q, flushed: %v", name, first.Body, first.Flushed)
			}
			s.wantReplay(first, s.order(name, "a"))
			s.wantRuns(1)
		}
	}},
}
