//go:build go1.25

package keyfunc_test

import (
	"errors"
	"fmt"
	"io"
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
	check(t, keyfunc.JSON("a"), keyfunc.Request(r), want{err: keyfunc.ErrBodyRead})
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
	fails(t, keyfunc.JSON("id", keyfunc.MaxBytes(1)), keyfunc.Request(r),
		`keyfunc: JSON field "id": too large: the body is longer than 1 bytes`)
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
