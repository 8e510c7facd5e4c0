package httplock

import (
	"net/http"
	"slices"

	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// RouteCheck collects routes, to say by what each is guarded, which are not guarded, and what
// looks wrong:
//
//   - a route that declares the parameters by which others are guarded, and is not guarded itself
//   - one that declares such a parameter twice, in another spelling or not at all
//   - one that Strict refuses
//   - a guard by a parameter that no route behind it declares
//   - a key like "id=42" of several resources
//
// [http.ServeMux] does not list its routes: Add them one by one. chi does: AddRouter adds all of
// them. chi.Walk(router, check.Add) adds them, too, but cannot tell that a guard runs before its
// route is known, as with Use.
//
// It sees guards that are the handler or middleware themselves, not those that other middleware
// calls. It runs no handler and no middleware but this package's, and key functions, see
// [keyfunc.Describe]. It serves no request, asks no Redis and does not block. Guards by path parameter learn from a report
// whether a route behind them declares it. The zero value is ready; it is not safe for concurrent use.
type RouteCheck struct{ seen []guard.SeenRoute }

// Add adds a route, with the handler that the router was given and the middleware that it has
// in front of it, outermost first. It never fails: the error is there for chi.Walk.
func (c *RouteCheck) Add(method, pattern string, handler http.Handler, middlewares ...func(http.Handler) http.Handler) error {
	c.add(nil, method, pattern, handler, middlewares)
	return nil
}

func (c *RouteCheck) add(
	before []guard.Before, method, pattern string, handler http.Handler, middlewares []func(http.Handler) http.Handler,
) {
	declared, isUnguarded := handler.(unguarded)
	if isUnguarded {
		handler = declared.Handler
	}
	isUnguarded = isUnguarded || guard.Has(middlewares, Unguarded) ||
		slices.ContainsFunc(before, func(b guard.Before) bool { return b.Unguarded })
	inside := guard.GuardsOf(&probe, []http.Handler{handler}, By(keyfunc.RemoteIP())(nil), func(h http.Handler) { probeInside(h) })
	c.seen = append(c.seen, guard.SeenRoute{
		Method: method, Pattern: pattern, Params: params(pattern), Before: before,
		Guards: append(guardsOf(middlewares), inside...), Subtree: isSubtree(pattern), Unguarded: isUnguarded,
	})
}

func guardsOf(middlewares []func(http.Handler) http.Handler) []*guard.Guard {
	return guard.GuardsOf(&probe, middlewares, By(keyfunc.RemoteIP()), func(m func(http.Handler) http.Handler) {
		m(nil).ServeHTTP(nil, probed)
	})
}

// Report says what is guarded of the routes that were added.
func (c *RouteCheck) Report() Report { return guard.Check[Route](c.seen) }

// Unguarded is middleware that does nothing: it declares a route, or a group, that is not guarded
// on purpose, such as one that reads what others change. [RouteCheck] then does not take it for one
// that was forgotten.
//
//	mux.Handle("GET /orders/{orderID}", httplock.Unguarded(getOrder))
func Unguarded(next http.Handler) http.Handler { return unguarded{next} }

type unguarded struct{ http.Handler }

// probed is no client's request: a guard that is called with it reports itself to probe.
var (
	probed = new(http.Request)
	probe  guard.Probe
)

// probeInside has a handler report the guards that it consists of to probe.
func probeInside(h http.Handler) {
	if f, ok := h.(http.HandlerFunc); ok && guard.SameCode(f, By(keyfunc.RemoteIP())(nil)) {
		f(nil, probed)
	}
}
