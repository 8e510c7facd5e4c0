package fiberlock

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// request shows a fiber request to key functions.
type request struct {
	c         fiber.Ctx
	http      *http.Request // nil until a key function asks for it
	params    []string      // the path parameters that it has asked for, their values
	misplaced error         // a path parameter that the route has not, or has twice
	twice     bool          // has twice
}

// Param is strict where c.Params is not: in app.Use the route is not known yet, and
// its parameters would be those of the path of Use. That is a mistake in the set-up,
// not the client's.
func (r *request) Param(name string) (value string, declared bool) {
	n := 0
	for _, p := range r.c.Route().Params {
		if p == name {
			n++
		}
	}
	if n != 1 {
		r.twice = r.twice || n > 1
		r.misplaced = fmt.Errorf("fiberlock: the route %q declares the path parameter %q %d times: "+
			"put the middleware on a route that declares it once", r.c.Route().Path, name, n)
		return "", false
	}
	value = strings.Clone(r.c.Params(name))
	r.params = append(r.params, value)
	return value, true
}

// path is as it was sent, as fiber routes by it: URI().Path() has no dot segments any more.
func (r *request) path() (string, error) {
	return url.PathUnescape(string(r.c.Request().URI().PathOriginal()))
}

// checkPath refuses a path that leads a server behind this one past the parameters of the key.
func (r *request) checkPath() error {
	if len(r.params) == 0 {
		return nil
	}
	path, err := r.path()
	if err != nil {
		return fmt.Errorf("fiberlock: the path does not decode: %w", keyfunc.ErrMalformed)
	}
	return keyfunc.ValidatePath(&http.Request{URL: &url.URL{Path: path}}, r.params...)
}

func (r *request) Value(key any) any {
	if v := r.c.Locals(key); v != nil {
		return v
	}
	return r.c.Context().Value(key)
}

// HTTP copies the head of the request, once. fiber's own adaptor package keeps one of
// several header fields of a name, and reads the query in another way than fiber does
// ("?id=42#1"): the lock would be by another value than the handler finds.
func (r *request) HTTP() *http.Request {
	if r.http != nil {
		return r.http
	}
	in := r.c.Request()
	header := http.Header{}
	for name, value := range in.Header.All() {
		header.Add(string(name), string(value))
	}
	path, _ := r.path() // see checkPath
	out := &http.Request{
		Method:     strings.Clone(r.c.Method()),
		URL:        &url.URL{Path: path, RawQuery: string(in.URI().QueryString())},
		Host:       string(in.Host()),
		Header:     header,
		RemoteAddr: r.c.RequestCtx().RemoteAddr().String(),
		Body:       &body{request: in},
	}
	r.http = out.WithContext(r.c.Context())
	return r.http
}

// body is the request's, which fasthttp has in memory, so that the handler finds it
// there still. It is looked at when a key function reads it, and not before: of an
// upload fasthttp would make a body again.
type body struct {
	request *fasthttp.Request
	reader  *bytes.Reader
}

var errStreamed = errors.New("fiberlock: with StreamRequestBody no key comes from the body")

func (b *body) Read(p []byte) (int, error) {
	if b.request.IsBodyStream() {
		return 0, errStreamed
	}
	if b.reader == nil {
		b.reader = bytes.NewReader(b.request.Body())
	}
	return b.reader.Read(p)
}

func (*body) Close() error { return nil }
