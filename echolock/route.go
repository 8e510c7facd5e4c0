package echolock

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// Route tells a request in e.Pre from one that no route matches by asking the
// router: echo shows an empty path for both.
func (r *request) Route() (pattern string, known bool) {
	path := r.c.Path()
	switch {
	case path == "":
		found, _ := r.find(r.HTTP().Method)
		r.unmatched = found == ""
		return "", r.unmatched
	case len(r.c.ParamNames()) == 0 && hasParam(path):
		// 405, for which the router lists no parameters, or middleware has removed them.
		return "", r.c.Get(echo.ContextKeyHeaderAllow) != nil
	case r.onlyNotFound(path):
		return "", true
	}
	return path, true
}

// hasParam reports whether a path has parameters.
func hasParam(path string) bool {
	return strings.ContainsAny(strings.ReplaceAll(path, `\:`, ""), ":*")
}

// leads reports whether the router matches what middleware has made of a request
// that it did not match.
func (r *request) leads(from *http.Request) bool {
	now := r.HTTP()
	if now.Method == from.Method && *now.URL == *from.URL {
		return false
	}
	path, _ := r.find(now.Method)
	return path != ""
}

// onlyNotFound reports whether a path that the router has matched is there for 404
// alone, as those are that a group with middleware adds. It does not go by the
// request's method, which middleware may have changed meanwhile: such a route is found
// by a method that nobody has, and differs from others with its path by its own list
// of names.
func (r *request) onlyNotFound(path string) bool {
	found, names := r.find("no method")
	if found != path {
		return false
	}
	own := r.c.ParamNames()
	if len(own) == 0 {
		return !r.has(path)
	}
	return len(names) == len(own) && &names[0] == &own[0]
}

// IsFallback asks echo for the name of the handler: groups with middleware register routes for 404 of their own, by
// echo's handler, so that their middleware runs.
func (r *request) IsFallback(g *guard.Guard) bool {
	own := guard.FunctionName(echo.NotFoundHandler)
	isRegistered := func(route *echo.Route) bool {
		return route.Method == echo.RouteNotFound && route.Path == r.c.Path() && route.Name != own
	}
	return slices.ContainsFunc(r.router().Routes(), isRegistered) && !isForAll(r.c.Echo(), g)
}

// find asks the router.
func (r *request) find(method string) (path string, names []string) {
	e := r.c.Echo()
	probe := e.AcquireContext()
	defer e.ReleaseContext(probe)
	probe.Reset(r.HTTP(), nil)
	r.router().Find(method, echo.GetPath(r.HTTP()), probe)
	return probe.Path(), probe.ParamNames()
}

// has reports whether there is a route of the request's method with this path.
func (r *request) has(path string) bool {
	for _, route := range r.router().Routes() {
		if route.Path == path && route.Method == r.HTTP().Method {
			return true
		}
	}
	return false
}

func (r *request) router() *echo.Router {
	e := r.c.Echo()
	if router := e.Routers()[r.HTTP().Host]; router != nil {
		return router
	}
	return e.Router()
}
