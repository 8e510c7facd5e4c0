package conformance_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// resetCases are clients that make the writing of an answer fail, after the work.
var resetCases = []conformanceCase{
	{"a client that resets the connection while the handler works: the work is still done", func(h *harness) {
		for name, end := range endings {
			running := make(chan struct{})
			s := h.serve(h.build(h.working(func(w http.ResponseWriter, r *http.Request) error {
				close(running)
				h.receive(r.Context().Done(), "the reset to arrive")
				return end(answerUntilItFails(h, w))
			})))
			conn := h.dial(s)
			fmt.Fprintf(conn, "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", name)
			h.receive(running, "the handler to run")
			reset(h, conn)
			h.receive(s.served, "the handler to return")
			h.wantWindow("id="+name, true)
		}
	}},
	{"a client that leaves a proxy's answer half read: the work is still done", func(h *harness) {
		backend := h.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "paid\n")
			w.(http.Flusher).Flush()
			h.receive(r.Context().Done(), "the proxy to leave")
		}))
		target, err := url.Parse(backend.URL)
		if err != nil {
			h.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.FlushInterval = -1
		s := h.serve(h.build(post("/{id}", byParam("id", core.KeepFor(time.Hour)), proxy.ServeHTTP)))
		conn := h.dial(s)
		fmt.Fprint(conn, "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
		if status, err := bufio.NewReader(conn).ReadString('\n'); status != "HTTP/1.1 200 OK\r\n" {
			h.Fatalf("read %q, %v", status, err)
		}
		reset(h, conn)
		h.receive(s.served, "the proxy to give up")
		h.wantWindow("id=1", true)
	}},
}

// endings are what handlers do when an answer cannot be written.
var endings = map[string]func(error) error{
	"returned": func(err error) error { return err },
	"panic":    func(err error) error { panic(err) },
	"abort":    func(error) error { panic(http.ErrAbortHandler) },
}

func answerUntilItFails(h *harness, w http.ResponseWriter) (err error) {
	for range 1000 {
		if _, err = w.Write(make([]byte, 4000)); err != nil {
			return err
		}
	}
	h.Error("the answer could be written")
	return errors.New("no error")
}

func (h *harness) dial(s *server) *net.TCPConn {
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// reset closes a connection so that the other side cannot write any more.
func reset(h *harness, conn *net.TCPConn) {
	if err := errors.Join(conn.SetLinger(0), conn.Close()); err != nil {
		h.Error(err)
	}
}
