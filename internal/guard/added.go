package guard

import "sync"

// Added collects routes as a framework tells of them, which tells what stands in front of a
// route only when it is added. M is its middleware. The zero value is ready, and safe for
// concurrent use.
type Added[M any] struct {
	mu     sync.Mutex
	routes []added[M]
	told   map[string]bool
}

type added[M any] struct {
	method, path string
	chain        []M
}

// Add notes a route.
func (a *Added[M]) Add(method, path string, chain []M) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.told == nil {
		a.told = map[string]bool{}
	}
	a.told[method+" "+path] = true
	a.routes = append(a.routes, added[M]{method, path, chain})
}

// Has reports whether a route was noted.
func (a *Added[M]) Has(method, path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told[method+" "+path]
}

// Seen are the routes, whose path parameters begin with a colon, behind what runs for all of
// them before the router and after it. Those with unguarded are so on purpose.
func (a *Added[M]) Seen(before, all []M, unguarded M, guardsOf func([]M) []*Guard) []Seen {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := make([]Seen, len(a.routes))
	for i, r := range a.routes {
		seen[i] = Seen{
			Method: r.method, Pattern: r.path, Params: ColonParams(r.path, ":*"),
			Before: []Before{{Guards: guardsOf(before), Mend: "give it to Use, not to Pre"}},
			Guards: append(guardsOf(all), guardsOf(r.chain)...), Unguarded: Has(r.chain, unguarded),
		}
	}
	return seen
}
