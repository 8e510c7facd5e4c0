package httplock

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// AddRouter adds all routes of a chi router, and of the routers that are mounted in it. Other
// than with chi.Walk, the report then says that a guard in Use runs before the route is
// known. It fails, and has added nothing, when the router does not show its routes and
// middleware as chi's do.
func (c *RouteCheck) AddRouter(router http.Handler) error {
	all := RouteCheck{}
	if err := all.addRouter(reflect.ValueOf(router), "", nil); err != nil {
		return err
	}
	c.seen = append(c.seen, all.seen...)
	return nil
}

var errNotChi = errors.New("httplock: AddRouter needs a router of chi, or one that shows its routes and middleware in the same way")

type middlewares = []func(http.Handler) http.Handler

// addRouter adds the routes of a router that is mounted at a pattern, behind some guards. It
// uses what chi exports, without importing it.
func (c *RouteCheck) addRouter(router reflect.Value, at string, before []guard.Before) error {
	if !router.IsValid() {
		return errNotChi
	}
	// Each name is a constant here. Of one that it cannot know the linker keeps every method of the program.
	routes, ok := returned(router.MethodByName("Routes"), reflect.Slice)
	used, alsoOK := returned(router.MethodByName("Middlewares"), reflect.Slice)
	if !ok || !alsoOK || !used.CanConvert(reflect.TypeFor[middlewares]()) {
		return errNotChi
	}
	with := used.Convert(reflect.TypeFor[middlewares]()).Interface().(middlewares)
	before = append(before, guard.Before{
		Guards: guardsOf(with), Params: params(at), Unguarded: guard.Has(with, Unguarded),
		Fix: "give it to r.With(...) of the routes, or to Use in r.Group, not in r.Route",
	})
	for _, route := range routes.Seq2() {
		if err := c.addRoute(route, at, before); err != nil {
			return err
		}
	}
	return nil
}

func (c *RouteCheck) addRoute(route reflect.Value, at string, before []guard.Before) error {
	if route.Kind() != reflect.Struct {
		return errNotChi
	}
	pattern, subRoutes := route.FieldByName("Pattern"), route.FieldByName("SubRoutes")
	handlers, ok := field[map[string]http.Handler](route, "Handlers")
	if pattern.Kind() != reflect.String || subRoutes.Kind() != reflect.Interface || !ok {
		return errNotChi
	}
	at = strings.ReplaceAll(at+pattern.String(), "/*/", "/")
	if !subRoutes.IsNil() {
		_, with := inChain(handlers["*"]) // which leads to the routes below
		before = append(slices.Clip(before), guard.Before{
			Guards: guardsOf(with), Params: params(at), Unguarded: guard.Has(with, Unguarded),
			Fix: "give it to r.With(...) of the routes, not of what is mounted",
		})
		return c.addRouter(subRoutes.Elem(), at, before)
	}
	for method, handler := range handlers {
		if method == "*" {
			continue // it is there by each method, too
		}
		endpoint, with := inChain(handler)
		c.add(before, method, at, endpoint, with)
	}
	return nil
}

// inChain returns the handler in a chi.ChainHandler, and the middleware in front of it.
func inChain(handler http.Handler) (endpoint http.Handler, with middlewares) {
	chain := reflect.Indirect(reflect.ValueOf(handler))
	if chain.Kind() != reflect.Struct {
		return handler, nil
	}
	endpoint, ok := field[http.Handler](chain, "Endpoint")
	with, alsoOK := field[middlewares](chain, "Middlewares")
	if !ok || !alsoOK {
		return handler, nil
	}
	return endpoint, with
}

// chiOf returns the outermost router of chi that has found a request's route. Chi keeps it in the context, under a key
// that only those have who import it.
func chiOf(ctx context.Context) (router http.Handler, found bool) {
	for ctx != nil {
		v := reflect.Indirect(reflect.ValueOf(ctx))
		if v.Kind() != reflect.Struct || !v.CanAddr() {
			return nil, false
		}
		if stored := guard.Unexported[any](v, "val"); stored != nil {
			if c := reflect.Indirect(reflect.ValueOf(*stored)); c.Kind() == reflect.Struct {
				if router, found := field[http.Handler](c, "Routes"); found {
					return router, true
				}
			}
		}
		around := guard.Unexported[context.Context](v, "Context")
		if around == nil {
			return nil, false
		}
		ctx = *around
	}
	return nil, false
}

// field returns an exported field of a struct.
func field[T any](v reflect.Value, name string) (value T, ok bool) {
	f := v.FieldByName(name)
	if !f.IsValid() || !f.CanInterface() || !f.CanConvert(reflect.TypeFor[T]()) {
		return value, false
	}
	value, ok = f.Convert(reflect.TypeFor[T]()).Interface().(T)
	return value, ok
}

// returned calls a method without parameters.
func returned(method reflect.Value, kind reflect.Kind) (result reflect.Value, ok bool) {
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 || method.Type().Out(0).Kind() != kind {
		return result, false
	}
	return method.Call(nil)[0], true
}
