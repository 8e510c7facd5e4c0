package conformance_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"reflect"
)

// flushCases are about answers that are sent piece by piece.
var flushCases = []conformanceCase{
	{"Idempotent: a chunked answer of a backend, behind a reverse proxy, is sent again", func(h *harness) {
		backend := h.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "paid ")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "by the backend, in full")
		}))
		target, err := url.Parse(backend.URL)
		if err != nil {
			h.Fatal(err)
		}
		shop := h.shop(nil, httputil.NewSingleHostReverseProxy(target).ServeHTTP)
		s := h.serve(shop)
		for range 3 {
			w := s.post("/orders", "X-User", "u7", "Idempotency-Key", "k")
			if h.wantStatus(w, http.StatusOK); w.Body.String() != "paid by the backend, in full" {
				h.Errorf("%q", w.Body)
			}
		}
		shop.wantRuns(1)
	}},
	{"Idempotent: an informational status by the framework's own writer ends no recording", func(h *harness) {
		if h.framework.name == "gin" {
			return // it sends no other one then
		}
		shop := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "paid")
		})
		s := h.serve(shop)
		for range 2 {
			if w := s.post("/orders", "X-User", "u7", "Idempotency-Key", "k"); w.Code != http.StatusOK || w.Body.String() != "paid" {
				h.Errorf("%d %s", w.Code, w.Body)
			}
		}
		shop.wantRuns(1)
	}},
	{"Idempotent: a status that follows an informational one by the framework's own writer is stored, and sent again", func(h *harness) {
		if h.framework.name == "gin" {
			return // it sends no other one then
		}
		shop := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "paid")
		})
		s := h.serve(shop)
		first := s.post("/orders", "X-User", "u7", "Idempotency-Key", "k")
		again := s.post("/orders", "X-User", "u7", "Idempotency-Key", "k")
		if first.Code != again.Code || again.Body.String() != "paid" {
			h.Errorf("first %d, then %d %s", first.Code, again.Code, again.Body)
		}
		shop.wantRuns(1)
	}},
	{"Idempotent: trailers are sent again, declared ones and others", func(h *harness) {
		for name, handle := range map[string]http.HandlerFunc{
			"declared": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Trailer", "X-Sum, x-rest")
				_, _ = io.WriteString(w, "paid")
				w.Header().Set("X-Sum", "7")
				w.Header().Set("X-Rest", "0")
				w.Header().Set("X-Late", "no trailer")
			},
			"prefixed": func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "paid")
				w.(http.Flusher).Flush()
				w.Header().Set(http.TrailerPrefix+"X-Sum", "7")
				w.Header().Set(http.TrailerPrefix+"X-Rest", "0")
			},
			"bodiless": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Trailer", "X-Sum, X-Rest")
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
				w.Header().Set("X-Sum", "7")
				w.Header().Set("X-Rest", "0")
			},
		} {
			for protocol, serve := range map[string]func(http.Handler) *server{"1": h.serve, "2": h.serveHTTP2} {
				shop := h.shop(nil, handle)
				s := serve(shop)
				for i := range 2 {
					response, err := s.client.Do(s.request("POST", "/orders", nil, "X-User", "u7", "Idempotency-Key", name+protocol+fmt.Sprint(s.Listener.Addr().(fmt.Stringer))))
					if err != nil {
						h.Fatal(err)
					}
					body, err := io.ReadAll(response.Body)
					_ = response.Body.Close()
					if (string(body) == "paid") == (name == "bodiless") || err != nil {
						h.Errorf("%s %s: %q, %v", name, protocol, body, err)
					}
					if want := (http.Header{"X-Sum": {"7"}, "X-Rest": {"0"}}); !reflect.DeepEqual(response.Trailer, want) {
						h.Errorf("%s over HTTP/%s, answer %d: trailers %q", name, protocol, i+1, response.Trailer)
					}
					if response.Header.Get("X-Late") != "" || response.Header.Get("X-Sum") != "" {
						h.Error("a field that came too late, or a trailer, is in the header")
					}
				}
				shop.wantRuns(1)
			}
		}
	}},
	{"Idempotent: the Content-Type that was found out from the first piece is that of the repetition", func(h *harness) {
		for _, first := range []string{"", "<ht", "<html>"} {
			shop := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, first)
				w.(http.Flusher).Flush()
				_, _ = io.WriteString(w, "<html>paid")
			})
			s := h.serve(shop)
			var types [2][]string
			for i := range types {
				types[i] = s.post("/orders", "X-User", "u7", "Idempotency-Key", "k"+first).Result().Header["Content-Type"]
			}
			if !reflect.DeepEqual(types[0], types[1]) {
				h.Errorf("after %q: %q, then %q", first, types[0], types[1])
			}
			shop.wantRuns(1)
		}
	}},
}
