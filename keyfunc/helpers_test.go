package keyfunc_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// request is a request of no framework.
type request struct {
	*http.Request
	params map[string]string
	values map[any]any
}

func (r request) HTTP() *http.Request { return r.Request }

func (r request) Param(name string) (value string, declared bool) {
	value, declared = r.params[name]
	return value, declared
}

func (r request) Value(key any) any { return r.values[key] }

// get is a GET of target, with header fields: name, value, and so on.
func get(target string, header ...string) request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return request{Request: r}
}

// post is a POST of a JSON body, declared as such unless the header says otherwise.
func post(body string, header ...string) request {
	r := get("/", header...)
	fields := r.Header
	r.Request = httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header = fields
	if r.Header["Content-Type"] == nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// task is a job.
type task struct{ kind, payload string }

func (t task) Type() string    { return t.kind }
func (t task) Payload() []byte { return []byte(t.payload) }

// secret is in values that no error may show.
const secret = "s3cret"

// want checks a key, or the kind of an error.
type want struct {
	key string
	err error
}

func check[S any](t *testing.T, f keyfunc.Func[S], s S, w want) {
	t.Helper()
	key, err := f(s)
	if w.err == nil {
		if key != w.key || err != nil {
			t.Errorf("got %q, %v; want %q", key, err, w.key)
		}
		return
	}
	if key != "" || !errors.Is(err, w.err) {
		t.Errorf("got %q, %v; want %v", key, err, w.err)
		return
	}
	for _, other := range []error{keyfunc.ErrMissing, keyfunc.ErrAmbiguous, keyfunc.ErrMalformed, keyfunc.ErrTooLarge, keyfunc.ErrSkip} {
		if other != w.err && errors.Is(err, other) {
			t.Errorf("%v is both %v and %v", err, w.err, other)
		}
	}
	if !strings.HasPrefix(err.Error(), "keyfunc: ") || strings.Contains(err.Error(), secret) {
		t.Errorf(`error %q; want one that begins with "keyfunc: " and shows no value`, err)
	}
}

// fails checks the text of an error.
func fails[S any](t *testing.T, f keyfunc.Func[S], s S, text string) {
	t.Helper()
	if _, err := f(s); err == nil || err.Error() != text {
		t.Errorf("got %v; want %s", err, text)
	}
}

// panics checks that f panics with a text that has all parts in it.
func panics(t *testing.T, f func(), parts ...string) {
	t.Helper()
	defer func() {
		t.Helper()
		text, _ := recover().(string)
		if text == "" || !strings.HasPrefix(text, "keyfunc: ") {
			t.Errorf("panicked with %q; want a sentence of keyfunc", text)
		}
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("panicked with %q; want %q in it", text, part)
			}
		}
	}()
	f()
}

// value is f with the key's only value in place of the key.
func value[S any](f keyfunc.Func[S]) keyfunc.Func[S] {
	return func(s S) (string, error) {
		key, err := f(s)
		if err != nil {
			return "", err
		}
		return decode(key)[0].value, nil
	}
}

// pair is what a key is a list of; a part without a name has an empty one.
type pair struct{ name, value string }

// decode is the inverse of Join and Named.
func decode(key string) []pair {
	pairs := []pair{{}}
	at := &pairs[0]
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case '=':
			at.name, at.value = at.value, ""
			continue
		case ':':
			pairs = append(pairs, pair{})
			at = &pairs[len(pairs)-1]
			continue
		case '\\':
			i++
		}
		at.value += key[i : i+1]
	}
	return pairs
}

func key(s string) keyfunc.Func[keyfunc.Request] {
	return func(keyfunc.Request) (string, error) { return s, nil }
}

func failing(err error) keyfunc.Func[keyfunc.Request] {
	return func(keyfunc.Request) (string, error) { return "", err }
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Errorf("reading: %v", err)
	}
	return string(b)
}
