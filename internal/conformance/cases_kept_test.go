package conformance_test

import (
	"net/http"
	"reflect"
)

// What is kept of an answer, and that a repetition gets no other one.
var keptCases = []conformanceCase{
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
	{"each byte of a header is kept, of whichever encoding", func(h *harness) {
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
}
