package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var clientCases = []conformanceCase{
	{"a client that leaves while it waits: nothing runs", func(h *harness) {
		for name, wait := range map[string]guarding{
			"no body": {param: "id", options: []core.Option{core.Wait(patience)}},
			// Once a body was read to its end the server notices as well.
			"JSON body": {key: keyfunc.Join(keyfunc.Const[keyfunc.Request]("id"), keyfunc.JSON("id")), options: []core.Option{core.Wait(patience)}},
		} {
			id := key(name)
			k := h.hold(map[string]string{"no body": "id=" + id, "JSON body": "id:id=" + id}[name])
			waiting := make(chan struct{})
			r := post("/{id}", []guarding{wait}, h.never())
			r.around = func(next func(), _ func() *http.Request) {
				close(waiting)
				next()
			}
			s := h.serve(h.build(r))
			ctx, leave := context.WithCancel(context.Background())
			go func() {
				h.receive(waiting, "the request to arrive")
				leave()
			}()
			var body io.Reader
			if name == "JSON body" {
				body = strings.NewReader(`{"id":"` + id + `"}`)
			}
			if _, err := s.client.Do(s.request("POST", "/"+id, body, "Content-Type", "application/json").WithContext(ctx)); !errors.Is(err, context.Canceled) {
				h.Errorf("%s: %v", name, err)
			}
			h.receive(s.served, name+": the server to notice")
			h.unlock(k)
			// The call may have been asking when it was cancelled: that is compensated.
			redistest.Await(h, patience, name+": the lock to be free", func() bool { return h.isFree(k.Key()) })
		}
	}},
	{"a client that leaves while the handler runs: the lock is kept until it returns", func(h *harness) {
		h.bothWays(func(window bool, opts ...core.Option) {
			id := fmt.Sprint(window)
			running := make(chan struct{})
			s := h.serve(h.build(post("/{id}", byParam("id", opts...), func(w http.ResponseWriter, r *http.Request) {
				close(running)
				h.receive(r.Context().Done(), "the handler to be told")
				if h.isFree("id=" + id) {
					h.Error("the lock was let go while the handler ran")
				}
				w.WriteHeader(http.StatusServiceUnavailable)
			})))
			ctx, leave := context.WithCancel(context.Background())
			go func() {
				h.receive(running, "the handler to run")
				leave()
			}()
			if _, err := s.client.Do(s.request("POST", "/"+id, nil).WithContext(ctx)); !errors.Is(err, context.Canceled) {
				h.Error(err)
			}
			h.receive(s.served, "the handler to return")
			h.wantWindow("id="+id, false)
		})
	}},
	{"http.ErrAbortHandler breaks the connection off; the answer that has begun counts", func(h *harness) {
		h.bothWays(func(window bool, opts ...core.Option) {
			s := h.serve(h.build(post("/{id}", byParam("id", opts...), func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "half of it")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			})))
			response, err := s.client.Do(s.request("POST", fmt.Sprintf("/%v", window), nil))
			if err != nil {
				h.Fatal(err)
			}
			defer response.Body.Close()
			if _, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				h.Errorf("the client read to the end: %v", err)
			}
			h.receive(s.served, "the handler to return")
			h.wantWindow(fmt.Sprintf("id=%v", window), window)
			if h.log.count("panic") > 0 {
				h.Error("the panic was logged")
			}
		})
	}},
	{"Expect: 100-continue: the body is asked for when the key is in it", func(h *harness) {
		const body = `{"id":42,"note":"x"}`
		s := h.serve(h.build(post("/", byKey(keyfunc.JSON("id")), func(w http.ResponseWriter, r *http.Request) {
			h.wantsHeld("id=42")(w, r)
			if got, err := io.ReadAll(r.Body); string(got) != body || err != nil {
				h.Errorf("read %q, %v", got, err)
			}
		})))
		h.wantStatus(s.do(s.request("POST", "/", strings.NewReader(body), "Content-Type", "application/json", "Expect", "100-continue")), http.StatusOK)
	}},
	{"256 half-sent bodies take nobody's place", func(h *harness) {
		const many = 256
		k := h.hold("id=1")
		arrived := make(chan struct{}, many+1)
		r := post("/{id}", byParam("id", core.Wait(patience)), ok)
		r.around = func(next func(), _ func() *http.Request) {
			arrived <- struct{}{}
			next()
		}
		s := h.serve(h.build(r))
		var conns [many]net.Conn
		for i := range conns {
			conns[i] = h.dial(s)
			fmt.Fprint(conns[i], "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx")
		}
		for range conns {
			h.receive(arrived, "a request to arrive")
		}
		honest := make(chan *httptest.ResponseRecorder, 1)
		go func() { honest <- s.do(s.request("POST", "/1", strings.NewReader("xx"))) }()
		h.receive(arrived, "the honest request")
		for _, conn := range conns {
			_ = conn.Close()
		}
		for range conns { // none of them waits for the lock
			h.receive(s.served, "the server to notice")
		}
		h.unlock(k)
		h.wantStatus(<-honest, http.StatusOK)
	}},
	{"Expect: 100-continue: the client of a refused request is spared a long body", func(h *harness) {
		defer h.unlock(h.hold("X-User=7"))
		s := h.serve(h.build(
			post("/busy", []guarding{{header: "X-User", options: []core.Option{core.NoWait()}}}, h.never()),
			post("/unread", []guarding{{config: &config{key: keyfunc.Header("X-User"), options: []core.Option{core.NoWait()}, bufferBody: -1}}}, h.never()),
			post("/long", byKey(keyfunc.JSON("id", keyfunc.MaxBytes(10))), h.never()),
			post("/form", byKey(keyfunc.JSON("id")), h.never())))
		for path, want := range map[string]int{
			"/busy": http.StatusConflict, "/unread": http.StatusConflict, "/long": http.StatusRequestEntityTooLarge, "/form": http.StatusBadRequest,
		} {
			text := `{"id":"a long one"}`
			if path == "/busy" {
				text = strings.Repeat("x", 64<<10+1)
			}
			body := &countedReader{Reader: strings.NewReader(text)}
			r := s.request("POST", path, body, "Content-Type", "application/json", "Expect", "100-continue", "X-User", "7")
			r.ContentLength = int64(len(text))
			if path == "/form" {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			h.wantProblem(s.do(r), want)
			if n := body.read.Load(); n > 0 {
				h.Errorf("%s: %d bytes were sent", path, n)
			}
		}
	}},
	{"HEAD is refused as others are, without a body", func(h *harness) {
		defer h.unlock(h.hold("id=1"))
		s := h.serve(h.build(route{method: http.MethodHead, pattern: "/{id}", guards: byParam("id", core.NoWait()), handle: h.never()}))
		w := s.do(s.request("HEAD", "/1", nil))
		h.wantStatus(w, http.StatusConflict)
		if w.Header().Get("Retry-After") != "1" || w.Body.Len() > 0 {
			h.Errorf("Retry-After %q, body %q", w.Header().Get("Retry-After"), w.Body)
		}
	}},
}

// countedReader counts what was read from it.
type countedReader struct {
	io.Reader
	read atomic.Int64
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read.Add(int64(n))
	return n, err
}
