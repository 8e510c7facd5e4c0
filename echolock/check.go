package echolock

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/labstack/echo/v4"

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
	next := e.OnAddRouteHandler
	e.OnAddRouteHandler = func(host string, r echo.Route, handler echo.HandlerFunc, middleware []echo.MiddlewareFunc) {
		switch {
		case r.Method != echo.RouteNotFound:
			added.Add(r.Method, host+r.Path, middleware)
		case r.Name != guard.FunctionName(echo.NotFoundHandler) && len(guardsOf(middleware)) > 0:
			added.AddFallback(r.Method, host+r.Path, middleware)
		}
		if next != nil {
			next(host, r, handler, middleware)
		}
	}
	return func() (Report, error) {
		fields := reflect.ValueOf(e).Elem()
		pre := guard.Unexported[[]echo.MiddlewareFunc](fields, "premiddleware")
		all := guard.Unexported[[]echo.MiddlewareFunc](fields, "middleware")
		if pre == nil || all == nil {
			return nil, errors.New("echolock: RouteCheck does not know where this version of echo keeps its middleware")
		}
		for host, router := range routersOf(e) {
			for _, r := range router.Routes() {
				if r.Method != echo.RouteNotFound && !added.Has(r.Method, host+r.Path) {
					return nil, fmt.Errorf("echolock: RouteCheck has not seen the route %q: "+
						"call it right after echo.New, and leave OnAddRouteHandler to it", r.Method+" "+host+r.Path)
				}
			}
		}
		return guard.Check[Route](added.Seen(*pre, *all, Unguarded, guardsOf)), nil
	}
}

// Unguarded is middleware that does nothing: it declares a route, or a group, that is not guarded
// on purpose, such as one that reads what others change. [RouteCheck] then does not take it for one
// that was forgotten.
//
//	e.GET("/orders/:orderID", getOrder, echolock.Unguarded)
func Unguarded(next echo.HandlerFunc) echo.HandlerFunc { return next }

// isForAll reports whether a guard was given to e.Use.
func isForAll(e *echo.Echo, g *guard.Guard) bool {
	all := guard.Unexported[[]echo.MiddlewareFunc](reflect.ValueOf(e).Elem(), "middleware")
	return all == nil || slices.Contains(guardsOf(*all), g)
}

// routersOf returns the routers by host, which is empty for that of all others.
func routersOf(e *echo.Echo) map[string]*echo.Router {
	all := map[string]*echo.Router{"": e.Router()}
	maps.Copy(all, e.Routers())
	return all
}

// probed is the context of no request: a guard that is called with it reports itself to probe.
var (
	probed echo.Context = &noRequest{}
	probe  guard.Probe
)

type noRequest struct{ echo.Context }

func guardsOf(chain []echo.MiddlewareFunc) []*guard.Guard {
	return guard.GuardsOf(&probe, chain, By(keyfunc.RemoteIP()), func(m echo.MiddlewareFunc) { _ = m(nil)(probed) })
}
