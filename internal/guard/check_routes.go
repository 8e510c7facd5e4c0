package guard

import (
	"reflect"
	"slices"
	"sync"
	"unsafe"
)

// SeenRoute is a route as the adapter shows it to Check.
type SeenRoute struct {
	Method, Pattern string
	Params          []string // path parameters that it declares
	Before          []Before // guards that run before it is known, outermost first
	Guards          []*Guard // those that run after that, outermost first
	TooLate         bool     // one comes after the handler
	Unguarded       bool     // on purpose
	Subtree         bool     // another router may be inside
}

// Before are guards that run when no more than some path parameters of a route are known.
type Before struct {
	Guards    []*Guard
	Params    []string
	Fix       string // what to do about those that need more
	Unguarded bool   // the routes are, on purpose
}

// AddedRoutes collects routes as they are added, because the framework shows only then what stands
// in front of them. M is its middleware. The zero value is ready, and safe for concurrent use.
type AddedRoutes[M any] struct {
	mu     sync.Mutex
	routes []addedRoute[M]
}

type addedRoute[M any] struct {
	method, path string
	chain        []M
	fallback     bool
}

// Add notes a route.
func (a *AddedRoutes[M]) Add(method, path string, chain []M) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.routes = append(a.routes, addedRoute[M]{method, path, chain, false})
}

// AddFallback notes a route for requests that no other one matches.
func (a *AddedRoutes[M]) AddFallback(method, path string, chain []M) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.routes = append(a.routes, addedRoute[M]{method, path, chain, true})
}

// Has reports whether a route was noted.
func (a *AddedRoutes[M]) Has(method, path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.routes, func(r addedRoute[M]) bool { return r.method == method && r.path == path })
}

// Seen are the routes, whose path parameters begin with a colon, behind what runs for all of
// them before the router and after it. Those with unguarded are so on purpose.
func (a *AddedRoutes[M]) Seen(before, all []M, unguarded M, guardsOf func([]M) []*Guard) []SeenRoute {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := make([]SeenRoute, len(a.routes))
	for i, r := range a.routes {
		if r.fallback {
			fallback := Before{Guards: guardsOf(r.chain), Fix: "take it away from RouteNotFound"}
			seen[i] = SeenRoute{Method: r.method, Pattern: r.path, Before: []Before{fallback}, Unguarded: Has(r.chain, unguarded)}
			continue
		}
		seen[i] = SeenRoute{
			Method: r.method, Pattern: r.path, Params: ColonParams(r.path, ":*"),
			Before: []Before{{Guards: guardsOf(before), Fix: "give it to Use, not to Pre"}},
			Guards: append(guardsOf(all), guardsOf(r.chain)...), Unguarded: Has(r.chain, unguarded),
		}
	}
	return seen
}

// DeclaredBehind returns the names of the path parameters that the routes behind a guard declare, or all do where it is in
// front of none of them itself, but called by other middleware.
func DeclaredBehind(g *Guard, routes []SeenRoute) (names []string) {
	isBehind := func(r SeenRoute) bool { return slices.Contains(r.Guards, g) }
	all := !slices.ContainsFunc(routes, isBehind)
	for _, r := range routes {
		if all || isBehind(r) {
			names = append(names, r.Params...)
		}
	}
	return names
}

// Probe collects the guards in front of a route. Its zero value is ready.
type Probe struct {
	mu    sync.Mutex
	found []*Guard
}

// Found adds a guard that was called by GuardsOf.
func (p *Probe) Found(g *Guard) { p.found = append(p.found, g) }

// GuardsOf returns the guards of some middleware, in its order. Middleware is called only if
// it is the adapter's, as ours is: by call, with a request that no client has sent. The adapter
// knows that request, and reports the guard to p.
func GuardsOf[F any](p *Probe, chain []F, ours F, call func(F)) []*Guard {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = nil
	for _, middleware := range chain {
		if SameCode(middleware, ours) {
			call(middleware)
		}
	}
	return p.found
}

// Has reports whether one of some middleware is this function.
func Has[F any](chain []F, function F) bool {
	return slices.ContainsFunc(chain, func(f F) bool { return SameCode(f, function) })
}

// SameCode reports whether two functions were made by the same lines of code.
func SameCode(f, g any) bool {
	a, b := reflect.ValueOf(f), reflect.ValueOf(g)
	return a.Kind() == reflect.Func && b.Kind() == reflect.Func && a.Pointer() == b.Pointer()
}

// Unexported returns a field of a struct that reflect does not hand out because it is not
// exported; nil when v has no such field, or one of another type. v must be addressable.
func Unexported[T any](v reflect.Value, field string) *T {
	f := v.FieldByName(field)
	if !f.IsValid() || f.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(unsafe.Pointer(f.UnsafeAddr()))
}

// FieldOf returns what finds an unexported field by its place, for each request; nil: there is no such field.
func FieldOf[S, T any](field string) func(*S) *T {
	f, found := reflect.TypeFor[S]().FieldByName(field)
	if !found || len(f.Index) > 1 || f.Type != reflect.TypeFor[T]() {
		return nil
	}
	return func(s *S) *T { return (*T)(unsafe.Add(unsafe.Pointer(s), f.Offset)) }
}
