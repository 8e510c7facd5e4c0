package conformance_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
)

// On a real server: what the first client sees must not change.
var idempotentServerCases = []conformanceCase{
	{"Idempotent: the first client sees an informational answer, a stream and trailers as ever", func(h *harness) {
		more := make(chan struct{})
		s := h.serve(h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			inform(w)
			w.Header().Set("Trailer", "X-Sum")
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "one\n")
			w.(http.Flusher).Flush()
			h.receive(more, "the client to read the first line")
			_, _ = io.WriteString(w, "two\n")
			w.Header().Set("X-Sum", "7")
		}))
		informed := make(chan int, 1)
		r := s.request("POST", "/orders", nil, "X-User", "u7", "Idempotency-Key", "k")
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { informed <- code; return nil },
		}))
		response, err := s.client.Do(r)
		if err != nil {
			h.Fatal(err)
		}
		defer response.Body.Close()
		if h.framework.name != "gin" && len(informed) != 1 { // gin keeps it back
			h.Error("no informational answer")
		}
		body := bufio.NewReader(response.Body)
		if line, err := body.ReadString('\n'); line != "one\n" {
			h.Fatalf("read %q, %v", line, err)
		}
		h.wantDraft(s.post("/orders", "X-User", "u7", "Idempotency-Key", "k"), http.StatusConflict, outstanding)
		close(more)
		if rest, err := io.ReadAll(body); string(rest) != "two\n" || err != nil || response.Trailer.Get("X-Sum") != "7" {
			h.Errorf("read %q, %v, trailer %q", rest, err, response.Trailer)
		}
		h.wantDraft(s.post("/orders", "X-User", "u7", "Idempotency-Key", "k"), http.StatusConflict, notReplayable)
	}},
	{"Idempotent: an informational status is not the answer", func(h *harness) {
		if h.framework.name == "gin" {
			return // it sends no other one then
		}
		s := h.serve(h.shop(nil, func(w http.ResponseWriter, r *http.Request) {
			inform(w)
			paid(w, r)
		}))
		for range 2 {
			if w := s.post("/orders", "X-User", "u7", "Idempotency-Key", "k"); w.Code != http.StatusCreated || w.Body.String() != "{\"order\": \"\"}\n" {
				h.Errorf("%d %s", w.Code, w.Body)
			}
		}
	}},
	{"Idempotent: an answer that is copied from a reader is stored, too", func(h *harness) {
		for _, n := range []int{5, 600, 60_000} {
			shop := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.Copy(w, io.LimitReader(strings.NewReader(strings.Repeat("a", n)), int64(n)))
			})
			s := h.serve(shop)
			for range 2 {
				if w := s.post("/orders", "X-User", "u7", "Idempotency-Key", fmt.Sprint(n)); w.Body.Len() != n || w.Code != http.StatusOK {
					h.Errorf("%d bytes of %d", w.Body.Len(), n)
				}
			}
			shop.wantRuns(1)
		}
	}},
	{"Idempotent: what the handler may not write is not in the answer", func(h *harness) {
		s := h.serve(h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			_, _ = io.WriteString(w, "paid")
			if _, err := io.WriteString(w, " twice"); !errors.Is(err, http.ErrContentLength) {
				h.Errorf("the handler is told %v", err)
			}
		}))
		for range 2 {
			if w := s.post("/orders", "X-User", "u7", "Idempotency-Key", "k"); w.Body.String() != "paid" {
				h.Errorf("%q", w.Body)
			}
		}
	}},
	{"Idempotent: an answer that is shorter or longer than it says is not sent again as a whole one", func(h *harness) {
		for _, serve := range []func(http.Handler) *server{h.serve, h.serveHTTP2} {
			for _, body := range []string{"", "pa", "paid", "paid twice"} {
				shop := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Length", "4")
					for i := 0; i < len(body); i += 2 {
						_, _ = io.WriteString(w, body[i:i+2])
					}
				})
				s := serve(shop)
				key := []string{"X-User", "u7", "Idempotency-Key", strings.ReplaceAll(fmt.Sprintf("%p-%s", s, body), " ", "-")}
				first, err := s.client.Do(s.request("POST", "/orders", nil, key...))
				text := []byte{}
				if err == nil {
					text, err = io.ReadAll(first.Body)
					_ = first.Body.Close()
				}
				again := s.post("/orders", key...)
				if err == nil {
					if string(text) != "paid" || again.Body.String() != "paid" {
						h.Errorf("%q is sent as %q, then %q", body, text, again.Body)
					}
				} else {
					h.wantDraft(again, http.StatusConflict, notReplayable)
				}
				shop.wantRuns(1)
			}
		}
	}},
	{"Idempotent: an answer without a body may have the length of one", func(h *harness) {
		for method, status := range map[string]int{"HEAD": http.StatusOK, "POST": http.StatusNotModified} {
			shop := h.shopWith(func(r *route) {
				r.method, r.guards = method, idempotent(byUser)
			}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "4")
				w.WriteHeader(status)
			})
			s := h.serve(shop)
			for range 2 {
				h.wantStatus(s.do(s.request(method, "/orders", nil, "X-User", "u7", "Idempotency-Key", method)), status)
			}
			shop.wantRuns(1)
		}
	}},
	{"Idempotent: compression outside is by the Accept-Encoding of the repetition", func(h *harness) {
		shop := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "paid") })
		s := h.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") == "gzip" {
				w.Header().Set("Content-Encoding", "gzip") // at once, as some do
				zip := &gzipWriter{ResponseWriter: w}
				defer zip.close()
				w = zip
			}
			shop.ServeHTTP(w, r)
		}))
		first := s.post("/orders", "X-User", "u7", "Idempotency-Key", "k", "Accept-Encoding", "gzip")
		h.unzip(first)
		again := s.post("/orders", "X-User", "u7", "Idempotency-Key", "k")
		if first.Body.String() != "paid" || again.Body.String() != "paid" || again.Header().Get("Content-Encoding") != "" {
			h.Errorf("%q, then %q in %q", first.Body, again.Body, again.Header().Get("Content-Encoding"))
		}
		shop.wantRuns(1)
	}},
	{"Idempotent: a WebSocket is opened once", func(h *harness) {
		shop := h.shop(nil, h.upgrade)
		s := h.serve(shop)
		conn := h.dial(s)
		fmt.Fprint(conn, "POST /orders HTTP/1.1\r\nHost: "+s.Listener.Addr().String()+"\r\nX-User: u7\r\nIdempotency-Key: k\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		answer := bufio.NewReader(conn)
		if line, err := answer.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 101") {
			h.Fatalf("%q, %v", line, err)
		}
		fmt.Fprint(conn, "bye\n")
		<-s.served
		w := s.post("/orders", "X-User", "u7", "Idempotency-Key", "k")
		h.wantDraft(w, http.StatusConflict, notReplayable)
		shop.wantRuns(1)
	}},
	{"Idempotent: a body of which a part was read before is refused, unless it was unzipped", func(h *harness) {
		for _, unzips := range []bool{false, true} {
			var inside http.Handler = h.shop(nil, paid)
			s := h.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if unzips {
					r.Body, r.Header = io.NopCloser(strings.NewReader("a")), r.Header.Clone()
					r.Header.Del("Content-Length")
				} else {
					_, _ = io.ReadFull(r.Body, make([]byte, len("amount=1")))
				}
				inside.ServeHTTP(w, r)
			}))
			w := s.do(s.request("POST", "/orders", strings.NewReader("amount=1\n"), "X-User", "u7", "Idempotency-Key", fmt.Sprint(unzips)))
			if want := map[bool]int{false: http.StatusInternalServerError, true: http.StatusCreated}[unzips]; w.Code != want {
				h.Errorf("unzipped: %v: status %d, want %d", unzips, w.Code, want)
			}
		}
	}},
	{"Idempotent: an answer without a Content-Type has none when it is sent again", func(h *harness) {
		shop := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<html>paid</html>")
		})
		s := h.serve(shop)
		for range 2 {
			w := s.post("/orders", "X-User", "u7", "Idempotency-Key", "k")
			if got, is := w.Result().Header["Content-Type"]; is || w.Body.String() != "<html>paid</html>" {
				h.Errorf("Content-Type %q, %s", got, w.Body)
			}
		}
		shop.wantRuns(1)
	}},
	{"Idempotent: a connection that is taken behind middleware outside is seen, too", func(h *harness) {
		if h.framework.name == "gin" {
			return // it panics
		}
		for what, wrap := range map[string]func(http.ResponseWriter) http.ResponseWriter{
			"unwraps":          func(w http.ResponseWriter) http.ResponseWriter { return onlyUnwraps{w} },
			"flushes, unwraps": func(w http.ResponseWriter) http.ResponseWriter { return flushes{onlyUnwraps{w}, w.(http.Flusher)} },
			"twice":            func(w http.ResponseWriter) http.ResponseWriter { return onlyUnwraps{onlyUnwraps{w}} },
		} {
			shop := h.shop(nil, func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					h.Error(err)
					return
				}
				defer conn.Close()
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\npaid")
			})
			s := h.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { shop.ServeHTTP(wrap(w), r) }))
			first := s.post("/orders", "X-User", "u7", "Idempotency-Key", key(what))
			if first.Body.String() != "paid" {
				h.Fatalf("%s: %q", what, first.Body)
			}
			<-s.served // its answer is kept when the handler has returned
			h.wantDraft(s.post("/orders", "X-User", "u7", "Idempotency-Key", key(what)), http.StatusConflict, notReplayable)
			<-s.served
			shop.wantRuns(1)
		}
	}},
	{"Idempotent: gzip outside, or inside, as the client of the repetition has it", func(h *harness) {
		for _, inside := range []bool{false, true} {
			text := strings.Repeat("paid ", 100)
			s := h.serve(h.shopWith(func(r *route) {
				if r.guards = idempotent(byUser); inside {
					r.inside = []companion{gzipping}
				} else {
					r.outside = []companion{gzipping}
				}
			}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
			for range 2 {
				w := s.post("/orders", "X-User", "u7", "Idempotency-Key", fmt.Sprint(inside), "Accept-Encoding", "gzip")
				h.unzip(w)
				if w.Body.String() != text {
					h.Errorf("inside: %v: %.40q", inside, w.Body)
				}
			}
		}
	}},
	{"Idempotent: a client that leaves in the middle finds the answer later", func(h *harness) {
		entered, more := make(chan struct{}), make(chan struct{})
		shop := h.shop(nil, func(w http.ResponseWriter, r *http.Request) {
			close(entered)
			<-more
			for range 10 {
				if _, err := w.Write(make([]byte, 5_000)); err != nil {
					h.Error(err)
				}
			}
		})
		s := h.serve(shop)
		conn := h.dial(s)
		fmt.Fprint(conn, "POST /orders HTTP/1.1\r\nHost: "+s.Listener.Addr().String()+"\r\nX-User: u7\r\nIdempotency-Key: k\r\n\r\n")
		<-entered
		_ = conn.SetLinger(0)
		_ = conn.Close()
		h.wantDraft(s.post("/orders", "X-User", "u7", "Idempotency-Key", "k"), http.StatusConflict, outstanding)
		close(more)
		<-s.served
		<-s.served
		w := s.post("/orders", "X-User", "u7", "Idempotency-Key", "k")
		if h.wantStatus(w, http.StatusOK); w.Body.Len() != 50_000 || w.Header().Get("Idempotent-Replayed") != "true" {
			h.Errorf("%d bytes", w.Body.Len())
		}
		shop.wantRuns(1)
	}},
}

// onlyUnwraps is a writer as middleware has it that counts by Go 1.20: what it cannot do, who it unwraps to can.
type onlyUnwraps struct{ http.ResponseWriter }

func (w onlyUnwraps) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type flushes struct {
	onlyUnwraps
	http.Flusher
}
