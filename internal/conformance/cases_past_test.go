package conformance_test

import (
	"io"
	"net/http"
	"strconv"
)

// unwrapped is the writer inside of a writer.
func unwrapped(w http.ResponseWriter) http.ResponseWriter {
	return w.(interface{ Unwrap() http.ResponseWriter }).Unwrap()
}

// pastTheGuard are handlers that write some of their answer by a writer that the guard does not see.
func (h *harness) pastTheGuard() map[string]http.HandlerFunc {
	past := h.framework.past
	return map[string]http.HandlerFunc{
		"all of it": func(w http.ResponseWriter, _ *http.Request) {
			w = past(w)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "paid in full")
		},
		"the body": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(past(w), "paid in full")
		},
		"the end of the body": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "paid ")
			_, _ = io.WriteString(past(w), "in full")
		},
	}
}

// What the guard has not seen of an answer, and the framework has, is missing in what was recorded.
var pastCases = []conformanceCase{
	{"an answer of which some was written past the guard is not sent again", func(h *harness) {
		if h.framework.past == nil {
			return
		}
		for name, handle := range h.pastTheGuard() {
			s := h.shop(nil, handle)
			first := s.order(key(name), "a")
			if h.wantStatus(first, http.StatusCreated); first.Body.String() != "paid in full" {
				h.Errorf("%s: the first client gets %q", name, first.Body)
			}
			for range 2 {
				h.wantDraft(s.order(key(name), "a"), http.StatusConflict, notReplayable)
			}
			s.wantRuns(1)
		}
	}},
	{"the beginning of a body that was written past the guard is missed, too", func(h *harness) {
		if h.framework.past == nil || h.framework.name == "echo v4" { // which has the guard's writer inside of its own
			return
		}
		s := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(h.framework.past(w), "paid ")
			_, _ = io.WriteString(w, "in full")
		})
		h.wantStatus(s.order("k", "a"), http.StatusOK)
		h.wantDraft(s.order("k", "a"), http.StatusConflict, notReplayable)
	}},
	{"a status that was written past the guard says whether there is an answer at all", func(h *harness) {
		if h.framework.past == nil {
			return
		}
		for code, stored := range map[int]bool{http.StatusPaymentRequired: true, http.StatusNoContent: true, http.StatusTeapot: false} {
			s := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
				w = h.framework.past(w)
				w.WriteHeader(code)
				if f, ok := w.(interface{ WriteHeaderNow() }); ok { // gin's
					f.WriteHeaderNow()
				}
			})
			id := strconv.Itoa(code)
			h.wantStatus(s.order(id, "a"), code)
			if again := s.order(id, "a"); stored {
				h.wantDraft(again, http.StatusConflict, notReplayable)
			} else {
				h.wantStatus(again, code)
			}
		}
	}},
	{"KeepFor: a status that was written past the guard decides", func(h *harness) {
		if h.framework.past == nil {
			return
		}
		for id, code := range map[string]int{"1": http.StatusCreated, "2": http.StatusConflict} {
			server := h.build(h.working(func(w http.ResponseWriter, _ *http.Request) error {
				w = h.framework.past(w)
				w.WriteHeader(code)
				_, _ = io.WriteString(w, "text")
				return nil
			}))
			h.wantStatus(send(server, "POST", "/"+id), code)
			h.wantWindow("id="+id, code < 400)
		}
	}},
}
