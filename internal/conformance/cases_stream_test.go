package conformance_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var streamCases = []conformanceCase{
	{"a stream reaches the client piece by piece, while the lock is held", func(h *harness) {
		h.bothWays(func(window bool, opts ...core.Option) {
			more := make(chan struct{})
			id := fmt.Sprint(window)
			s := h.serve(h.build(post("/{id}", byParam("id", opts...), func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "one\n")
				w.(http.Flusher).Flush()
				h.receive(more, "the client to read the first line")
				_, _ = io.WriteString(w, "two\n")
			})))
			response, err := s.client.Do(s.request("POST", "/"+id, nil))
			if err != nil {
				h.Fatal(err)
			}
			defer response.Body.Close()
			body := bufio.NewReader(response.Body)
			if line, err := body.ReadString('\n'); line != "one\n" {
				h.Fatalf("read %q, %v", line, err)
			}
			if h.isFree("id=" + id) {
				h.Error("the lock is free while the answer goes on")
			}
			close(more)
			if rest, err := io.ReadAll(body); string(rest) != "two\n" || err != nil {
				h.Errorf("read %q, %v", rest, err)
			}
			h.wantWindow("id="+id, window)
		})
	}},
	{"http.ResponseController: deadlines and Flush", func(h *harness) {
		h.bothWays(func(window bool, opts ...core.Option) {
			s := h.serve(h.build(post("/{id}", byParam("id", opts...), func(w http.ResponseWriter, _ *http.Request) {
				control := http.NewResponseController(w)
				for name, err := range map[string]error{
					"SetWriteDeadline": control.SetWriteDeadline(time.Now().Add(patience)),
					"SetReadDeadline":  control.SetReadDeadline(time.Now().Add(patience)),
					"Flush":            control.Flush(),
				} {
					if err != nil {
						h.Errorf("%s: %v", name, err)
					}
				}
			})))
			h.wantStatus(s.post(fmt.Sprintf("/%v", window)), http.StatusOK)
		})
	}},
	{"a connection is hijacked, and the lock held until the handler returns", func(h *harness) {
		h.bothWays(func(window bool, opts ...core.Option) {
			id := fmt.Sprint(window)
			s := h.serve(h.build(route{method: http.MethodGet, pattern: "/{id}", guards: byParam("id", opts...), handle: h.upgrade}))
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			if err != nil {
				h.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", id)
			in := bufio.NewReader(conn)
			response, err := http.ReadResponse(in, nil)
			if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
				h.Fatalf("%v, %v", response, err)
			}
			fmt.Fprintln(conn, "hello")
			if line, err := in.ReadString('\n'); line != "hello\n" {
				h.Fatalf("read %q, %v", line, err)
			}
			if h.isFree("id=" + id) {
				h.Error("the lock is free while the handler talks")
			}
			fmt.Fprintln(conn, "bye")
			h.receive(s.served, "the handler to return")
			h.wantWindow("id="+id, window)
		})
	}},
	{"KeepFor: taking the connection begins an answer of success, whatever follows", func(h *harness) {
		for name, end := range endings {
			s := h.serve(h.build(h.working(func(w http.ResponseWriter, _ *http.Request) error {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					h.Error(err)
					return nil
				}
				_ = conn.Close()
				return end(errors.New("the client has gone"))
			})))
			fmt.Fprintf(h.dial(s), "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", name)
			h.receive(s.served, "the handler to return")
			h.wantWindow("id="+name, true)
		}
	}},
	{"bodies of several MiB pass up and down untouched", func(h *harness) {
		sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
		h.bothWays(func(window bool, opts ...core.Option) {
			s := h.serve(h.build(post("/{id}", byParam("id", opts...), func(w http.ResponseWriter, r *http.Request) {
				got, err := io.ReadAll(r.Body)
				if sha256.Sum256(got) != sha256.Sum256(sent) || err != nil {
					h.Errorf("the handler read %d bytes, %v", len(got), err)
				}
				if n, err := io.Copy(w, io.MultiReader(bytes.NewReader(got))); n != int64(len(sent)) || err != nil {
					h.Errorf("the handler wrote %d bytes, %v", n, err)
				}
			})))
			w := s.do(s.request("POST", fmt.Sprintf("/%v", window), io.MultiReader(bytes.NewReader(sent))))
			if h.wantStatus(w, http.StatusOK); !bytes.Equal(w.Body.Bytes(), sent) {
				h.Errorf("the client read %d bytes", w.Body.Len())
			}
			h.wantWindow(fmt.Sprintf("id=%v", window), window)
		})
	}},
	{"a JSON body of several MiB is locked by, and untouched", func(h *harness) {
		body := `{"note":"` + strings.Repeat("x", 4<<20) + `","id":42}`
		s := h.serve(h.build(post("/", byKey(keyfunc.JSON("id", keyfunc.MaxBytes(8<<20))), func(w http.ResponseWriter, r *http.Request) {
			h.wantsHeld("id=42")(w, r)
			if got, err := io.ReadAll(r.Body); string(got) != body || err != nil {
				h.Errorf("the handler read %d bytes, %v", len(got), err)
			}
		})))
		for _, reader := range []io.Reader{strings.NewReader(body), io.MultiReader(strings.NewReader(body))} {
			h.wantStatus(s.do(s.request("POST", "/", reader, "Content-Type", "application/json")), http.StatusOK)
		}
	}},
	{"the files of an upload are removed afterwards", func(h *harness) {
		h.Setenv("TMPDIR", h.TempDir())
		body, contentType := upload(h, 1<<20)
		s := h.serve(h.build(post("/{id}", byParam("id"), func(_ http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1); err != nil {
				h.Error(err)
			}
			if n := h.tempFiles(); n != 1 {
				h.Errorf("%d files while the handler runs, want 1", n)
			}
		})))
		h.wantStatus(s.do(s.request("POST", "/1", body, "Content-Type", contentType)), http.StatusOK)
		s.Close() // waits until the server is done with the request
		if n := h.tempFiles(); n != 0 {
			h.Errorf("%d files are left", n)
		}
	}},
}
