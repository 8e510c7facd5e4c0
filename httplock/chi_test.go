package httplock_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// chiRouter, chiRoute and chiChain show what chi's types of the same kind show.
type (
	chiRouter struct {
		http.Handler
		used   chiMiddlewares
		routes []chiRoute
	}
	chiRouters interface {
		Routes() []chiRoute
		Middlewares() chiMiddlewares
	}
	chiRoute struct {
		SubRoutes chiRouters
		Handlers  map[string]http.Handler
		Pattern   string
	}
	chiChain struct {
		http.Handler
		Endpoint    http.Handler
		chain       http.Handler
		Middlewares chiMiddlewares
	}
	chiMiddlewares []func(http.Handler) http.Handler
)

func (r *chiRouter) Routes() []chiRoute          { return r.routes }
func (r *chiRouter) Middlewares() chiMiddlewares { return r.used }

// halfRouter has a route as chi's are, and one that leads to something else.
type (
	halfRouter struct{ http.Handler }
	halfRoute  struct {
		SubRoutes any
		Handlers  map[string]http.Handler
		Pattern   string
	}
)

func (halfRouter) Routes() []halfRoute {
	return []halfRoute{{Pattern: "/a", Handlers: map[string]http.Handler{"GET": nil}}, {Pattern: "/b/*", SubRoutes: 5}}
}
func (halfRouter) Middlewares() chiMiddlewares { return nil }

// In chi, Use of a router runs before that router has found the route.
func TestCheckOfAChiRouter(t *testing.T) {
	end := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a handler was called") })
	leaf := func(pattern string, with ...func(http.Handler) http.Handler) chiRoute {
		var handler http.Handler = end
		if with != nil {
			handler = &chiChain{Endpoint: end, chain: end, Middlewares: with}
		}
		return chiRoute{Handlers: map[string]http.Handler{"POST": handler, "*": handler}, Pattern: pattern}
	}
	sub := func(pattern string, with, used chiMiddlewares, routes ...chiRoute) chiRoute {
		mounted := map[string]http.Handler{"*": &chiChain{Endpoint: end, Middlewares: with}}
		return chiRoute{SubRoutes: &chiRouter{used: used, routes: routes}, Handlers: mounted, Pattern: pattern}
	}
	byID := httplock.ByParam("orderID")
	guards := chiMiddlewares{byID}
	const contradiction = "is declared Unguarded, and is guarded"
	router := &chiRouter{used: chiMiddlewares{httplock.ByHeader("X-Shop")}, routes: []chiRoute{
		leaf("/a/{orderID}", byID),
		sub("/b/*", nil, guards, leaf("/{orderID}/pay")),
		sub("/c/*", nil, chiMiddlewares{httplock.By(keyfunc.Int(keyfunc.Param("orderID")))}, leaf("/{orderID}/pay")),
		sub("/d/{orderID}/*", nil, guards, leaf("/pay")),
		sub("/e/*", guards, nil, leaf("/{orderID}/pay")),
		sub("/f/{orderID}/*", guards, nil, leaf("/pay")),
		sub("/g/*", nil, nil, leaf("/{orderID}/pay", byID)),
		sub("/h/*", nil, nil, sub("/x/*", nil, nil,
			sub("/1/{orderID}/*", nil, guards, leaf("/pay")), sub("/2/{orderID}/*", guards, nil, leaf("/pay")),
			sub("/3/{orderID}/*", nil, nil, leaf("/pay")))),
		sub("/i/*", nil, chiMiddlewares{httplock.Unguarded}, leaf("/{id}")),
		sub("/j/*", chiMiddlewares{httplock.Unguarded}, nil, leaf("/{id}")),
		leaf("/k/{id}", httplock.Unguarded),
		sub("/l/{id}/*", nil, chiMiddlewares{httplock.ByParam("id")}, leaf("/pay")),
		sub("/m/{id}/*", nil, chiMiddlewares{httplock.ByParam("id")}, leaf("/pay")),
		leaf("/files/*", httplock.By(keyfunc.Path(keyfunc.Param("*")))),
	}}
	var check httplock.RouteCheck
	if err := check.AddRouter(router); err != nil {
		t.Fatal(err)
	}
	want := map[string]struct{ guards, faults string }{
		"/a/{orderID}":         {`header "X-Shop"|path parameter "orderID"`, ""},
		"/b/{orderID}/pay":     {`header "X-Shop"`, "not in r.Route"},
		"/c/{orderID}/pay":     {`header "X-Shop"`, "not in r.Route"},
		"/d/{orderID}/pay":     {`header "X-Shop"|path parameter "orderID"`, ""},
		"/e/{orderID}/pay":     {`header "X-Shop"`, "not of what is mounted"},
		"/f/{orderID}/pay":     {`header "X-Shop"|path parameter "orderID"`, ""},
		"/g/{orderID}/pay":     {`header "X-Shop"|path parameter "orderID"`, ""},
		"/h/x/1/{orderID}/pay": {`header "X-Shop"|path parameter "orderID"`, ""},
		"/h/x/2/{orderID}/pay": {`header "X-Shop"|path parameter "orderID"`, ""},
		"/h/x/3/{orderID}/pay": {`header "X-Shop"`, ""},
		"/i/{id}":              {`header "X-Shop"`, contradiction},
		"/j/{id}":              {`header "X-Shop"`, contradiction},
		"/k/{id}":              {`header "X-Shop"`, contradiction},
		"/l/{id}/pay":          {`header "X-Shop"|path parameter "id"`, ""},
		"/m/{id}/pay":          {`header "X-Shop"|path parameter "id"`, `of "m" here and of "l"`},
		"/files/*":             {`header "X-Shop"|path parameter "*"`, ""},
	}
	report := check.Report()
	if len(report) != len(want) {
		t.Errorf("%d routes, want %d:\n%s", len(report), len(want), report)
	}
	for _, r := range report {
		w := want[r.Pattern]
		if guards := strings.Join(r.Guards, "|"); guards != w.guards || r.Method != "POST" {
			t.Errorf("%s %s: guarded by %q, want %q", r.Method, r.Pattern, guards, w.guards)
		}
		if faults := strings.Join(r.Faults, "|"); (faults == "") != (w.faults == "") || !strings.Contains(faults, w.faults) {
			t.Errorf("%s: faults %q, want %q", r.Pattern, faults, w.faults)
		}
	}
}

func TestAddRouterNeedsARouterThatShowsItsRoutes(t *testing.T) {
	var check httplock.RouteCheck
	for _, router := range []http.Handler{nil, http.NewServeMux(), http.NotFoundHandler(), halfRouter{}} {
		if err := check.AddRouter(router); err == nil || len(check.Report()) > 0 {
			t.Errorf("%T: %v, %s", router, err, check.Report())
		}
	}
}

// chiContext is what chi keeps of a request in its context.
type chiContext struct {
	Routes interface {
		http.Handler
		chiRouters
	}
}

// Behind a router of chi a guard finds the other routes by itself: a route without the parameter passes if one of them
// declares it, whatever was asked for before.
func TestByParamFindsTheRoutesOfChi(t *testing.T) {
	type key struct{}
	for want, other := range map[int]string{http.StatusOK: "/orders/{orderID}/pay", http.StatusInternalServerError: "/orders/{id}/pay"} {
		inBubble(t, func(t *testing.T, _ *core.Locker, _ *bytes.Buffer) {
			byID := httplock.ByParam("orderID")
			end := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			leaf := func(pattern string, guards ...func(http.Handler) http.Handler) chiRoute {
				return chiRoute{Handlers: map[string]http.Handler{"POST": &chiChain{Endpoint: end, Middlewares: guards}}, Pattern: pattern}
			}
			router := &chiRouter{Handler: end, routes: []chiRoute{leaf("/orders", byID), leaf(other, byID), leaf("/carts/{orderID}")}}
			found := func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, cancel := context.WithCancel(context.WithValue(r.Context(), key{}, &chiContext{router}))
					defer cancel()
					next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, key{}, "more")))
				})
			}
			if w := post(found(otherRouter("/orders")(byID(end))), "http://example.com/orders"); w.Code != want {
				t.Errorf("beside %s: status %d, want %d", other, w.Code, want)
			}
		})
	}
}
