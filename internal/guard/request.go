package guard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Request is what an adapter shows of a framework's request.
type Request interface {
	keyfunc.Request
	// Decoded reports whether the router has decoded the escapes in a path parameter.
	Decoded(param string) bool
	// Params returns the names of the path parameters that the matched route
	// declares, a name that it declares twice twice. Param may know more of them.
	Params() []string
	// Declared returns the names of the path parameters that the routes behind a guard declare, or any
	// route if the router does not know which these are, where it can be asked.
	Declared(behind *Guard) (names []string, known bool)
	// Route returns the pattern that the router has matched, empty when it
	// matched none. It is not known where the middleware runs before routing, or
	// before the last of several routers.
	Route() (pattern string, known bool)
	// IsFallback reports whether a request that no route has matched is one for a handler of such requests that was registered
	// with this guard. One that is for all requests does not count.
	IsFallback(*Guard) bool
	// ResponseHeader returns the header of the response, always the same map.
	ResponseHeader() http.Header
	// ServedBy returns the name, as FunctionName has it, of the framework's function that ends when its
	// context may be used for another request; empty: there is no such context.
	ServedBy() string
}

// routeText is the route of a request for the log, with its method. Clients can make methods up: those are left out.
func routeText(r Request) string {
	pattern, _ := r.Route()
	switch method := r.HTTP().Method; {
	case pattern == "" || strings.Contains(pattern, " "):
		return pattern
	case IsSafe(r.HTTP()), method == http.MethodPost, method == http.MethodPut, method == http.MethodPatch, method == http.MethodDelete:
		return method + " " + pattern
	}
	return pattern
}

// isUnmatched reports whether no route has matched: then nothing is misconfigured,
// and the framework answers 404 or 405.
func isUnmatched(r Request) bool {
	pattern, known := r.Route()
	return known && pattern == ""
}

// IsSafe reports whether a request is by one of the methods that only read:
// https://www.rfc-editor.org/rfc/rfc9110#section-9.2.1.
func IsSafe(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// defaultBuffer is how long a body may be that is read before the lock is requested, unless
// the configuration says otherwise.
const defaultBuffer = 64 << 10

// buffer reads the body of a request before the lock is requested. net/http notices that a client
// has left only after its body was read: a client that never sends the last byte, and leaves, would
// otherwise wait for the lock in front of others, or hold it.
func (g *Guard) buffer(r *http.Request) error {
	switch limit := g.config.BufferBody; {
	case limit > 0:
		return keyfunc.BufferBody(r, limit)
	case limit < 0 || r.ContentLength < 0:
		return nil
	}
	err := keyfunc.BufferBody(r, defaultBuffer)
	if errors.Is(err, keyfunc.ErrTooLarge) {
		return nil // for the handler to find out: perhaps it is a stream, or middleware has unzipped it
	}
	return err
}

// Inner returns the copy of a request that the handler works with, under the lock's
// ctx. Its body cannot be read any more once the lock has ended before its time: a
// handler that has waited for it would go on beside the next holder.
func Inner(outer *http.Request, ctx context.Context) *http.Request {
	inner := outer.WithContext(ctx)
	if inner.Body != nil && inner.Body != http.NoBody {
		inner.Body = &guardedBody{ReadCloser: inner.Body, ctx: ctx}
	}
	return inner
}

// HandBack gives to a request what was found out on the copy that the handler has
// worked with, for those outside who look for it there: the server, which removes
// the files of an upload by MultipartForm, and middleware that counts by Pattern.
func HandBack(outer, inner *http.Request) {
	if inner.MultipartForm != nil {
		outer.MultipartForm = inner.MultipartForm
	}
	if inner.Pattern != outer.Pattern {
		outer.Pattern = inner.Pattern
	}
}

type guardedBody struct {
	io.ReadCloser
	ctx context.Context
}

// Read drops what it has read when the lock ended meanwhile.
func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if ended := b.ended(); ended != nil {
		return 0, ended
	}
	return n, err
}

func (b *guardedBody) ended() error {
	if b.ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(b.ctx)
	for _, end := range []error{core.ErrLost, core.ErrMaxHold, core.ErrClosed} {
		if errors.Is(cause, end) {
			return &bodyError{cause}
		}
	}
	return nil // the client has left, or the lock was released in time
}

// bodyError does not print its cause, which names the key: handlers tend to send
// the errors of reading to the client.
type bodyError struct{ cause error }

func (e *bodyError) Error() string { return "latchkey: the lock ended before the body was read" }
func (e *bodyError) Unwrap() error { return e.cause }
