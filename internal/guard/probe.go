package guard

import (
	"reflect"
	"slices"
	"sync"
)

// Probe is told which guards are in front of a route. Its zero value is ready.
type Probe struct {
	mu    sync.Mutex
	found []*Guard
}

// Found tells of a guard that was called by GuardsOf.
func (p *Probe) Found(g *Guard) { p.found = append(p.found, g) }

// GuardsOf returns the guards of some middleware, in its order. Middleware is called only if
// it is the adapter's, as ours is: by call, with a request that no client has sent, by which the
// adapter knows that it has to tell p.
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
