package keyfunc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// serve runs a server whose handler reads what JSON has left.
func serve(t *testing.T, f keyfunc.Func[keyfunc.Request]) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := f(request{Request: r})
		if errors.Is(err, keyfunc.ErrTooLarge) {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		body, bodyErr := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %v %d %s %v", key, err, r.ContentLength, body, bodyErr)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestBodyOverHTTP(t *testing.T) {
	server := serve(t, keyfunc.Join(keyfunc.JSON("id"), keyfunc.JSON("id")))
	const text = `{"id":1}`
	for name, c := range map[string]struct {
		body   io.Reader
		header http.Header // beside the type
		answer string
	}{
		"with a length": {strings.NewReader(text), nil, `id=1:id=1 <nil> 8 {"id":1} <nil>`},
		"chunked":       {io.MultiReader(strings.NewReader(text)), nil, `id=1:id=1 <nil> -1 {"id":1} <nil>`},
		"Expect":        {strings.NewReader(text), http.Header{"Expect": {"100-continue"}}, `id=1:id=1 <nil> 8 {"id":1} <nil>`},
	} {
		t.Run(name, func(t *testing.T) {
			for range 3 { // on one connection, which must stay in order
				r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL, c.body)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				maps.Copy(r.Header, c.header)
				res, err := server.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if got := readAll(t, res.Body); got != c.answer {
					t.Errorf("got %s; want %s", got, c.answer)
				}
				res.Body.Close()
				if s, ok := c.body.(io.Seeker); ok {
					_, _ = s.Seek(0, io.SeekStart)
				} else {
					c.body = io.MultiReader(strings.NewReader(text))
				}
			}
		})
	}
}

// A client that asks first is not told to send what will be refused.
func TestExpectContinueIsNotAnsweredForABodyThatIsTooLarge(t *testing.T) {
	server := serve(t, keyfunc.JSON("id", keyfunc.MaxBytes(100)))
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 101\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 413") {
		t.Errorf("got %q, %v; want 413", line, err)
	}
}
