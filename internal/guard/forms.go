package guard

import (
	"net/http"

	"github.com/latchkey-go/latchkey/core/adapter"
)

// Forms has the functions of an adapter's Config asked about the framework's request, which of
// returns.
func Forms[C any](shared func(C) bool, permits func(C) int, of func(Request) C) adapter.Forms[Request] {
	return adapter.Forms[Request]{Shared: asked(shared, of), Permits: asked(permits, of)}
}

func asked[C, T any](f func(C) T, of func(Request) C) func(Request) T {
	if f == nil {
		return nil
	}
	return func(r Request) T { return f(of(r)) }
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
