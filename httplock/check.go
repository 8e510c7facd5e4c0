package httplock

import (
	"net/http"

	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Report is what is guarded, and by what. String makes a table of it for the log, Err an error
// of all that looks wrong, for a test.
type Report = guard.Report

// Route is a route of a [Report].
type Route = guard.Route

// Check collects routes, to say what each is guarded by, which are not guarded, and what looks
// wrong: a route that declares a parameter by which others are guarded, one that declares it
// twice or in another spelling, one that Strict refuses. [http.ServeMux] does not list its
// routes: Add them one by one. chi does: chi.Walk(router, check.Add).
//
// It sees guards that are the handler, or middleware, themselves, not those that other
// middleware calls; nor whether chi runs one before the route is known, as Use does. It runs
// no handler and no middleware but this package's, serves no request, asks no Redis and does not
// block. The zero value is ready; it is not safe for concurrent use.
type Check struct{ seen []guard.Seen }

// Add adds a route, with the handler that the router was given and the middleware that it has
// in front of it, outermost first. It never fails: the error is there for chi.Walk.
func (c *Check) Add(method, pattern string, handler http.Handler, middlewares ...func(http.Handler) http.Handler) error {
	ours := By(keyfunc.RemoteIP())
	guards := guard.GuardsOf(&probe, middlewares, ours, func(m func(http.Handler) http.Handler) {
		m(nil).ServeHTTP(nil, probed)
	})
	inside := guard.GuardsOf(&probe, []http.Handler{handler}, ours(nil), func(h http.Handler) { tellOf(h) })
	c.seen = append(c.seen, guard.Seen{
		Method: method, Pattern: pattern, Params: params(pattern), Guards: append(guards, inside...), Subtree: isSubtree(pattern),
	})
	return nil
}

// Report says what is guarded of the routes that were added.
func (c *Check) Report() Report { return guard.Check(c.seen) }

// probed is no client's request: a guard that is called with it tells probe.
var (
	probed = new(http.Request)
	probe  guard.Probe
)

// tellOf has a handler tell probe of the guards that it consists of.
func tellOf(h http.Handler) {
	if f, ok := h.(http.HandlerFunc); ok && guard.SameCode(f, By(keyfunc.RemoteIP())(nil)) {
		f(nil, probed)
	}
}
