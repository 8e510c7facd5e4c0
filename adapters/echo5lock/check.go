package echo5lock

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// RouteCheck begins to list the routes of e: call it before the first one is added, because echo
// shows only then what stands in front of a route. Call the function that it returns once all
// routes are there. The report says by what each route is guarded, which are not guarded, and what
// looks wrong:
//
//   - a route that declares the parameters by which others are guarded, and is not guarded itself
//   - one that declares such a parameter twice, in another spelling or not at all
//   - one that Strict refuses
//   - a guard by a parameter that no route behind it declares
//   - a guard in e.Pre, or before a handler of RouteNotFound
//   - a key like "id=42" of several resources
//
// It runs no middleware but this package's, and key functions, see [keyfunc.Describe]. It serves no
// request, asks no Redis and does not block. Guards by path parameter learn from it which routes are behind them.
//
// It sees guards that are middleware themselves, not those that other middleware calls. report
// fails with a version of echo that has the middleware of e.Use elsewhere. It also fails when it
// has not seen a route, which was added before RouteCheck or after somebody else has taken the hook
// for added routes.
func RouteCheck(e *echo.Echo) (report func() (Report, error)) {
	var added guard.AddedRoutes[echo.MiddlewareFunc]
	next := e.OnAddRoute
	e.OnAddRoute = func(r echo.Route) error {
		if next != nil {
			if err := next(r); err != nil {
				return err
			}
		}
		switch {
		case r.Method != echo.RouteNotFound:
			added.Add(r.Method, r.Path, r.Middlewares)
		case r.Handler != nil && len(guardsOf(r.Middlewares)) > 0:
			added.AddFallback(r.Method, r.Path, r.Middlewares)
		}
		return nil
	}
	return func() (Report, error) {
		fields := reflect.ValueOf(e).Elem()
		pre := guard.Unexported[[]echo.MiddlewareFunc](fields, "premiddleware")
		all := guard.Unexported[[]echo.MiddlewareFunc](fields, "middleware")
		if pre == nil || all == nil {
			return nil, errors.New("echo5lock: RouteCheck does not know where this version of echo keeps its middleware")
		}
		for _, r := range e.Router().Routes() {
			if r.Method != echo.RouteNotFound && !added.Has(r.Method, r.Path) {
				return nil, fmt.Errorf("echo5lock: RouteCheck has not seen the route %q: "+
					"call it right after echo.New, leave OnAddRoute to it, and add routes to echo, not to its router", r.Method+" "+r.Path)
			}
		}
		return guard.Check[Route](added.Seen(*pre, *all, Unguarded, guardsOf)), nil
	}
}

// Unguarded is middleware that does nothing: it declares a route, or a group, that is not guarded
// on purpose, such as one that reads what others change. [RouteCheck] then does not take it for one
// that was forgotten.
//
//	e.GET("/orders/:orderID", getOrder, echo5lock.Unguarded)
func Unguarded(next echo.HandlerFunc) echo.HandlerFunc { return next }

// isForAll reports whether a guard was given to e.Use.
func isForAll(e *echo.Echo, g *guard.Guard) bool {
	all := guard.Unexported[[]echo.MiddlewareFunc](reflect.ValueOf(e).Elem(), "middleware")
	return all == nil || slices.Contains(guardsOf(*all), g)
}

// probed is the context of no request: a guard that is called with it reports itself to probe.
var (
	probed = new(echo.Context)
	probe  guard.Probe
)

func guardsOf(chain []echo.MiddlewareFunc) []*guard.Guard {
	return guard.GuardsOf(&probe, chain, By(keyfunc.RemoteIP()), func(m echo.MiddlewareFunc) { _ = m(nil)(probed) })
}
