package hertzlock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// request shows a hertz request to key functions.
type request struct {
	ctx       context.Context
	c         *app.RequestContext
	http      *http.Request // nil until a key function asks for it
	params    []string      // the path parameters that it has asked for, their values
	misplaced error         // a path parameter that the route has not, or has twice
	twice     bool          // has twice
}

// Param notices a parameter that the route has not, or has twice. That is a mistake in
// the set-up, not the client's.
func (r *request) Param(name string) (value string, declared bool) {
	n := 0
	for _, p := range r.c.Params {
		if p.Key == name {
			n, value = n+1, p.Value
		}
	}
	if n != 1 {
		r.twice = r.twice || n > 1
		r.misplaced = fmt.Errorf("hertzlock: the route %q declares the path parameter %q %d times: "+
			"put the middleware on routes that declare it once", r.c.FullPath(), name, n)
		return "", false
	}
	value = strings.Clone(value)
	r.params = append(r.params, value)
	return value, true
}

// checkPath refuses a path that leads a server behind this one past the parameters of the key.
func (r *request) checkPath() error {
	if len(r.params) == 0 {
		return nil
	}
	path := string(r.c.Request.URI().Path())
	if r.routed() != path { // with UseRawPath hertz routes by the path as it was sent
		var err error
		if path, err = url.PathUnescape(string(r.c.Request.URI().PathOriginal())); err != nil {
			return fmt.Errorf("hertzlock: the path does not decode: %w", keyfunc.ErrMalformed)
		}
	}
	return keyfunc.ValidatePath(&http.Request{URL: &url.URL{Path: path}}, r.params...)
}

// routed is the path by which hertz has found the route: its pattern, with the values of the parameters.
func (r *request) routed() string {
	segments, values := strings.Split(r.c.FullPath(), "/"), r.c.Params
	for i, segment := range segments {
		if sign := strings.IndexAny(segment, ":*"); sign >= 0 && len(values) > 0 {
			segments[i], values = segment[:sign]+values[0].Value, values[1:]
		}
	}
	return strings.Join(segments, "/")
}

func (r *request) Value(key any) any {
	if v := r.c.Value(key); v != nil {
		return v
	}
	return r.ctx.Value(key)
}

// HTTP copies the head of the request, once. hertz's own adaptor package copies the
// body, too: it makes the body of an upload again, and one that is streamed it takes
// from the handler.
func (r *request) HTTP() *http.Request {
	if r.http != nil {
		return r.http
	}
	in := &r.c.Request
	header := http.Header{}
	in.Header.VisitAll(func(name, value []byte) { header.Add(string(name), string(value)) })
	out := &http.Request{
		Method:     string(in.Method()),
		URL:        &url.URL{Path: string(in.URI().Path()), RawQuery: string(in.URI().QueryString())},
		Host:       string(in.Host()),
		Header:     header,
		RemoteAddr: r.c.RemoteAddr().String(),
		Body:       io.NopCloser(bytes.NewReader(in.BodyBytes())), // the handler finds it there still
	}
	if in.IsBodyStream() {
		out.Body = io.NopCloser(streamed{})
	}
	r.http = out.WithContext(r.ctx)
	return r.http
}

// streamed is a body that is not in memory.
type streamed struct{}

func (streamed) Read([]byte) (int, error) {
	return 0, errors.New("hertzlock: with WithStreamBody no key comes from the body")
}
