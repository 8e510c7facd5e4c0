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
	"sync"
	"testing"
	"testing/iotest"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// stream is a body that tells what became of it.
type stream struct {
	io.Reader
	closed int
}

func (s *stream) Close() error {
	s.closed++
	return errOwn
}

func streaming(r io.Reader) (request, *stream) {
	body := &stream{Reader: r}
	req := post("")
	req.Body, req.ContentLength = body, -1
	return req, body
}

func TestBodyIsThereForTheHandler(t *testing.T) {
	const text = ` {"id": 1, "note":"é"}  `
	for name, reader := range map[string]io.Reader{
		"whole":       strings.NewReader(text),
		"by bytes":    iotest.OneByteReader(strings.NewReader(text)),
		"EOF at once": iotest.DataErrReader(strings.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			r, body := streaming(reader)
			check(t, keyfunc.JSON("id"), keyfunc.Request(r), want{key: "id=1"})
			if r.ContentLength != -1 {
				t.Errorf("ContentLength %d; want it unchanged", r.ContentLength)
			}
			if got := readAll(t, iotest.OneByteReader(r.Body)); got != text {
				t.Errorf("the handler reads %q; want %q", got, text)
			}
			if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("after the end: %d, %v; want EOF", n, err)
			}
			if err := r.Body.Close(); err != errOwn || body.closed != 1 {
				t.Errorf("Close: %v, %d times; want the body's own", err, body.closed)
			}
		})
	}
}

func TestTwoJSONPartsReadOneBody(t *testing.T) {
	const text = `{"a":1,"b":2}`
	r := post(text)
	check(t, keyfunc.JSON("a"), keyfunc.Request(r), want{key: "a=1"})
	body := r.Body
	f := keyfunc.Join(keyfunc.JSON("a", keyfunc.MaxBytes(100)), keyfunc.JSON("b"), keyfunc.JSON("a", keyfunc.MaxBytes(int64(len(text)))))
	check(t, f, keyfunc.Request(r), want{key: "a=1:b=2:a=1"})
	if r.Body != body {
		t.Error("the body was put into one more")
	}
	check(t, keyfunc.JSON("a", keyfunc.MaxBytes(5)), keyfunc.Request(r), want{err: keyfunc.ErrTooLarge})
	if got := readAll(t, r.Body); got != text {
		t.Errorf("the handler reads %q", got)
	}
	check(t, keyfunc.JSON("a"), keyfunc.Request(r), want{err: keyfunc.ErrMissing}) // nothing is left
}

func TestJSONSeesWhatIsLeftOfTheBody(t *testing.T) {
	r, _ := streaming(strings.NewReader(`{"id":1}{"id":2}`))
	check(t, keyfunc.JSON("id"), keyfunc.Request(r), malformed)
	if _, err := io.ReadFull(r.Body, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	check(t, keyfunc.JSON("id"), keyfunc.Request(r), want{key: "id=2"})
	if got := readAll(t, r.Body); got != `{"id":2}` {
		t.Errorf("the handler reads %q", got)
	}
}

func TestBodyThatIsTooLarge(t *testing.T) {
	text := `{"id":1,"x":"` + strings.Repeat("x", 1<<20) + `"}`
	exact := text[len(text)-1<<20:]
	exact = `{"id":1,"x":"` + exact[len(`{"id":1,"x":"`):]
	for name, c := range map[string]struct {
		f    keyfunc.Func[keyfunc.Request]
		text string
		want
	}{
		"at the default limit":   {keyfunc.JSON("id"), exact, want{key: "id=1"}},
		"over it":                {keyfunc.JSON("id"), exact + " ", want{err: keyfunc.ErrTooLarge}},
		"far over it":            {keyfunc.JSON("id"), text + text, want{err: keyfunc.ErrTooLarge}},
		"at a limit":             {keyfunc.JSON("id", keyfunc.MaxBytes(8)), `{"id":1}`, want{key: "id=1"}},
		"over a limit":           {keyfunc.JSON("id", keyfunc.MaxBytes(7)), `{"id":1}`, want{err: keyfunc.ErrTooLarge}},
		"under the most":         {keyfunc.JSON("id", keyfunc.MaxBytes(1<<63-1)), text, want{key: "id=1"}},
		"Optional does not help": {keyfunc.Optional(keyfunc.JSON("other", keyfunc.MaxBytes(7))), `{"id":1}`, want{err: keyfunc.ErrTooLarge}},
	} {
		t.Run(name, func(t *testing.T) {
			r, body := streaming(strings.NewReader(c.text))
			check(t, c.f, keyfunc.Request(r), c.want)
			if got := readAll(t, r.Body); got != c.text {
				t.Errorf("the handler reads %d bytes; want all %d", len(got), len(c.text))
			}
			r.Body.Close()
			if body.closed != 1 {
				t.Errorf("closed %d times", body.closed)
			}
		})
	}
	r, _ := streaming(strings.NewReader("{}"))
	fails(t, keyfunc.JSON("id", keyfunc.MaxBytes(1)), keyfunc.Request(r), `keyfunc: JSON field "id": too large: the body is longer than 1 bytes`)
}

func TestBodyIsReadNoFurtherThanTheLimit(t *testing.T) {
	source := strings.NewReader(strings.Repeat(" ", 1000))
	r, _ := streaming(source)
	check(t, keyfunc.JSON("id", keyfunc.MaxBytes(10)), keyfunc.Request(r), want{err: keyfunc.ErrTooLarge})
	if source.Len() != 1000-11 {
		t.Errorf("%d bytes were read; want 11", 1000-source.Len())
	}
	check(t, keyfunc.JSON("id", keyfunc.MaxBytes(20)), keyfunc.Request(r), want{err: keyfunc.ErrTooLarge})
	check(t, keyfunc.JSON("id", keyfunc.MaxBytes(15)), keyfunc.Request(r), want{err: keyfunc.ErrTooLarge})
	if source.Len() != 1000-21 {
		t.Errorf("%d bytes were read; want 21", 1000-source.Len())
	}
}

func TestBodyThatIsTooLargeForOnePartOnly(t *testing.T) {
	const text = `{"id":1}`
	r, _ := streaming(strings.NewReader(text))
	check(t, keyfunc.JSON("id", keyfunc.MaxBytes(4)), keyfunc.Request(r), want{err: keyfunc.ErrTooLarge})
	check(t, keyfunc.JSON("id"), keyfunc.Request(r), want{key: "id=1"})
	if got := readAll(t, r.Body); got != text {
		t.Errorf("the handler reads %q; want %q", got, text)
	}
}

func TestBodyThatIsAnnouncedTooLargeIsNotRead(t *testing.T) {
	r, body := streaming(iotest.ErrReader(errors.New("read")))
	r.ContentLength = 11
	check(t, keyfunc.JSON("id", keyfunc.MaxBytes(10)), keyfunc.Request(r), want{err: keyfunc.ErrTooLarge})
	if r.Body != io.ReadCloser(body) {
		t.Error("the body was replaced")
	}
}

func TestBodyUnderMaxBytesReader(t *testing.T) {
	r, _ := streaming(strings.NewReader(`{"id":1}`))
	r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, 5)
	check(t, keyfunc.JSON("id"), keyfunc.Request(r), want{err: keyfunc.ErrTooLarge})
	var limit *http.MaxBytesError
	if got, err := io.ReadAll(r.Body); string(got) != `{"id"` || !errors.As(err, &limit) {
		t.Errorf("the handler reads %q, %v; want the error that it would have had", got, err)
	}
}

func TestBodyThatFails(t *testing.T) {
	broken := fmt.Errorf("broken after %s", secret)
	r, _ := streaming(io.MultiReader(strings.NewReader(`{"id":1`), iotest.ErrReader(broken)))
	for range 2 {
		check(t, keyfunc.JSON("id"), keyfunc.Request(r), malformed)
		if _, err := keyfunc.JSON("id")(r); !errors.Is(err, broken) {
			t.Errorf("got %v; want its cause kept", err)
		}
	}
	check(t, keyfunc.Optional(keyfunc.JSON("id")), keyfunc.Request(r), malformed)
	for range 2 {
		got, err := io.ReadAll(r.Body)
		if err != broken {
			t.Errorf("the handler reads %q, %v; want the error", got, err)
		}
	}

	// An error that would not come again is kept for the handler.
	r, _ = streaming(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(`{"id":1}`))))
	for range 2 {
		check(t, keyfunc.JSON("id"), keyfunc.Request(r), malformed)
	}
	if got, err := io.ReadAll(r.Body); string(got) != "{" || err != iotest.ErrTimeout {
		t.Errorf("the handler reads %q, %v; want the error where it was", got, err)
	}

	// An error right after a whole text is no end of the body either.
	r, _ = streaming(io.MultiReader(strings.NewReader(`{"id":1}`), iotest.ErrReader(broken)))
	check(t, keyfunc.JSON("id"), keyfunc.Request(r), malformed)
	r, _ = streaming(io.MultiReader(strings.NewReader(`{"id":1}`), iotest.ErrReader(fmt.Errorf("early: %w", io.EOF))))
	check(t, keyfunc.JSON("id"), keyfunc.Request(r), malformed)
}

func TestNoBody(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		r := get("/")
		r.Body = body
		check(t, keyfunc.JSON("id"), keyfunc.Request(r), want{err: keyfunc.ErrMissing})
		if r.Body != body {
			t.Error("the body was replaced")
		}
	}
}

func TestClosedBody(t *testing.T) {
	r := post(`{"id":1}`)
	check(t, keyfunc.JSON("id"), keyfunc.Request(r), want{key: "id=1"})
	r.Body.Close()
	if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose {
		t.Errorf("after Close: %d, %v", n, err)
	}
	check(t, keyfunc.JSON("id"), keyfunc.Request(r), malformed)
}

// A reverse proxy closes the body of a request while it still sends it.
func TestBodyMayBeClosedWhileItIsRead(t *testing.T) {
	for range 100 {
		r := post(`{"id":1}`)
		check(t, keyfunc.JSON("id"), keyfunc.Request(r), want{key: "id=1"})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.ReadAll(iotest.OneByteReader(r.Body)) })
		wg.Go(func() { _ = r.Body.Close() })
		wg.Wait()
	}
}

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
