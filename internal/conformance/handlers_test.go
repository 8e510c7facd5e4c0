package conformance_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// never is a handler that must not run.
func (h *harness) never() http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) { h.Error("the handler ran") }
}

// wantsHeld is a handler that wants its lock to be held.
func (h *harness) wantsHeld(key string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h.isFree(key) {
			h.Errorf("the handler runs, but %q is not held", key)
		}
		if k, held := core.FromContext(r.Context()); !held || k.Key() != key {
			h.Errorf("the context does not hold %q", key)
		}
	}
}

// slow is a handler that takes d.
func (o *overlap) slow(d time.Duration) http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) {
		o.enter()
		defer o.leave()
		time.Sleep(d)
	}
}

func (h *harness) sendAll(server http.Handler, n int, target func(i int) string, want int) {
	var crowd sync.WaitGroup
	answers := make([]*httptest.ResponseRecorder, n)
	for i := range n {
		crowd.Go(func() { answers[i] = send(server, "POST", target(i)) })
	}
	crowd.Wait()
	for _, w := range answers {
		h.wantStatus(w, want)
	}
}

// panics runs f and returns what it panicked with.
func (h *harness) panics(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	h.Error("no panic")
	return nil
}

// upgrade takes the connection and returns what it reads, line by line, until "bye".
func (h *harness) upgrade(w http.ResponseWriter, _ *http.Request) {
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		h.Error(err)
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	for {
		line, err := buffered.ReadString('\n')
		if err != nil || line == "bye\n" {
			return
		}
		fmt.Fprint(conn, line)
	}
}

// upload is a form with a file of n bytes.
func upload(h *harness, n int) (body io.Reader, contentType string) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	file, err := form.CreateFormFile("file", "f")
	if err == nil {
		_, err = file.Write(make([]byte, n))
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		h.Fatal(err)
	}
	return &b, form.FormDataContentType()
}

func (h *harness) tempFiles() int {
	files, err := os.ReadDir(os.TempDir())
	if err != nil {
		h.Error(err)
	}
	return len(files)
}
