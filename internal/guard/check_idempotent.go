package guard

import (
	"net/http"
	"slices"
	"strings"
)

// anyMethod says what is wrong with a route for all methods behind a guard that has requests count
// once. Where a framework shows it as a route for each method it is said of GET's.
func anyMethod(seen Seen, routes []Seen) (fault string) {
	guards := slices.Clone(seen.Guards)
	for _, before := range seen.Before {
		guards = append(guards, before.Guards...)
	}
	isTraced := func(other Seen) bool { return other.Method == http.MethodTrace && other.Pattern == seen.Pattern }
	isIdempotent := func(g *Guard) bool { return g.config.Idempotent != nil }
	isAny := false
	switch seen.Method {
	case "echo_route_any":
		isAny = true
	case "":
		isAny = !seen.Subtree && !strings.Contains(seen.Pattern, " ") // or a router inside goes by the method, or the pattern does
	case http.MethodGet:
		isAny = slices.ContainsFunc(routes, isTraced) // which nobody else has
	}
	if !isAny || !slices.ContainsFunc(guards, isIdempotent) {
		return ""
	}
	return "it is for all methods, and Idempotent lets those that only read pass without a key: give the route its method, such as POST"
}
