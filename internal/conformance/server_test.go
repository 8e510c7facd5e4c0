package conformance_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// patience is how long a case waits for what is certain to come.
const patience = 2 * time.Minute

// server is a real one. Its client neither follows redirects nor decompresses.
type server struct {
	*httptest.Server
	h      *harness
	client *http.Client
	served chan struct{} // gets a value whenever a request has been served
}

func (h *harness) serve(handler http.Handler) *server {
	return h.serveBy((*httptest.Server).Start, handler)
}

func (h *harness) serveHTTP2(handler http.Handler) *server {
	return h.serveBy(func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.StartTLS()
	}, handler)
}

func (h *harness) serveBy(start func(*httptest.Server), handler http.Handler) *server {
	s := &server{h: h, served: make(chan struct{}, 1000)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { s.served <- struct{}{} }()
		handler.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(h.log, "", 0)
	start(s.Server)
	h.Cleanup(s.Close)
	s.client = s.Client()
	s.client.Timeout = patience
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transport := s.client.Transport.(*http.Transport)
	transport.DisableCompression = true
	transport.ExpectContinueTimeout = patience
	return s
}

func (s *server) request(method, path string, body io.Reader, header ...string) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), method, s.URL+path, body)
	if err != nil {
		s.h.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// do sends a request and returns the whole answer in the form of the recorder's, so
// that it can be checked in the same way.
func (s *server) do(r *http.Request) *httptest.ResponseRecorder {
	s.h.Helper()
	response, err := s.client.Do(r)
	if err != nil {
		s.h.Fatal(err)
	}
	defer response.Body.Close()
	w := httptest.NewRecorder()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	if _, err := io.Copy(w, response.Body); err != nil {
		s.h.Fatal(err)
	}
	return w
}

func (s *server) post(path string, header ...string) *httptest.ResponseRecorder {
	s.h.Helper()
	return s.do(s.request("POST", path, nil, header...))
}

// unzip replaces a compressed body.
func (h *harness) unzip(w *httptest.ResponseRecorder) {
	h.Helper()
	if w.Header().Get("Content-Encoding") != "gzip" {
		h.Fatalf("not compressed: %d %q", w.Code, w.Body)
	}
	r, err := gzip.NewReader(w.Body)
	if err != nil {
		h.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		h.Fatal(err)
	}
	w.Body = bytes.NewBuffer(plain)
}

// receive waits for a channel that is certain to be closed or to get a value.
func (h *harness) receive(from <-chan struct{}, what string) {
	h.Helper()
	select {
	case <-from:
	case <-time.After(patience):
		h.Fatalf("waited too long for %s", what)
	}
}

// bothWays runs f without and with a dedup window, for which a writer may be
// wrapped. The options include NoWait.
func (h *harness) bothWays(f func(window bool, opts ...core.Option)) {
	f(false, core.NoWait())
	f(true, core.NoWait(), core.KeepFor(time.Hour))
}

// key differs for each use, so that a window of one does not hinder another.
func key(parts ...string) string {
	return strings.NewReplacer(" ", "-", "/", "-").Replace(strings.Join(parts, "-"))
}
