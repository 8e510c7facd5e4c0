package guard

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// Check says what is guarded of some routes.
func Check[R Row](routes []SeenRoute) []R {
	routes = slices.Clone(routes)
	slices.SortStableFunc(routes, func(a, b SeenRoute) int {
		return cmp.Or(strings.Compare(a.Pattern, b.Pattern), strings.Compare(a.Method, b.Method))
	})
	report := make([]Route, len(routes))
	keys := vagueKeys{}
	var by []guardedBy        // those that are by some path parameters
	used := map[*Guard]bool{} // those that are by a path parameter which some route declares, more or less
	for i, seen := range routes {
		route := &report[i]
		*route = Route{Method: seen.Method, Pattern: seen.Pattern}
		if seen.TooLate {
			route.Faults = append(route.Faults, "a guard comes after the handler, which then runs unlocked: put it before")
		}
		for _, before := range seen.Before {
			for _, g := range before.Guards {
				if key := g.on(before.Params); key.Err == nil {
					route.guarded(seen, g, key, keys)
				} else {
					route.Faults = append(route.Faults, fmt.Sprintf("the guard by %s runs before the route is known, and has all refused with 500: %s", g.config.About, before.Fix))
				}
			}
		}
		for _, g := range seen.Guards {
			params, fault := g.at(seen)
			switch {
			case fault != "":
				route.Faults = append(route.Faults, fault)
			case params != nil:
				route.guarded(seen, g, g.on(seen.Params), keys)
				by = append(by, guardedBy{params, seen.Pattern})
			}
			used[g] = used[g] || fault != "" || params != nil
		}
		if fault := anyMethod(seen, routes); fault != "" {
			route.Faults = append(route.Faults, fault)
		}
	}
	for i, seen := range routes {
		switch route := &report[i]; {
		case seen.Unguarded && len(route.Guards) > 0:
			route.Faults = append(route.Faults, "it is declared Unguarded, and is guarded: leave one of them out")
		case !seen.Unguarded && len(route.Guards)+len(route.Faults) == 0:
			route.Faults = forgotten(seen, by)
		}
		report[i].Unguarded = seen.Unguarded
	}
	for i, seen := range routes {
		for _, g := range seen.Guards {
			if !used[g] {
				used[g] = true // say it once
				report[i].Faults = append(report[i].Faults, undeclared("no route behind the guard", g.on(nil).Params, paramsBehind(g, routes)))
			}
		}
	}
	return rowsOf[R](report)
}

// guarded notes that the guard guards the route, by a key.
func (r *Route) guarded(seen SeenRoute, g *Guard, key keyfunc.Description, keys vagueKeys) {
	r.Guards = append(r.Guards, g.says())
	if fault := keys.fault(seen, g.locker(), key); fault != "" {
		r.Faults = append(r.Faults, fault)
	}
}

// on describes the key where a route declares some path parameters.
func (g *Guard) on(params []string) keyfunc.Description {
	return keyfunc.DescribeSet(g.config.Keys, func(name string) bool { return slices.Contains(params, name) })
}

// at returns the path parameters by which the guard guards a route, nil when it lets it pass,
// or why it refuses every request for it.
func (g *Guard) at(seen SeenRoute) (params []string, fault string) {
	key := g.on(seen.Params)
	params = []string{}
	missing := ""
	for _, name := range key.Params {
		switch count(seen.Params, name) {
		case 0:
			missing = cmp.Or(missing, name)
		case 1:
			params = append(params, name)
		default:
			return nil, fmt.Sprintf("it declares the path parameter %q twice, and is refused with 500: give them two names", name)
		}
	}
	near := slices.IndexFunc(seen.Params, func(other string) bool { return alike(missing, other) })
	switch passes := g.config.Param != "" || errors.Is(key.Err, keyfunc.ErrSkip); {
	case key.Err == nil:
		return params, ""
	case near >= 0:
		return nil, fmt.Sprintf("the lock is by the path parameter %q, but it declares %q, and is refused with 500: write one name in both places", missing, seen.Params[near])
	case seen.Subtree:
		return nil, fmt.Sprintf("it is a subtree and does not declare the path parameter %q, and is refused with 500, for another router may be inside: guard the routes of that one", missing)
	case g.config.Strict:
		return nil, fmt.Sprintf("it does not declare the path parameter %q, and Strict has it refused with 500", missing)
	case passes:
		return nil, ""
	}
	return nil, fmt.Sprintf("it does not declare the path parameter %q, by which the lock is, and is refused with 500: guard it by something else", missing)
}

// guardedBy are the path parameters by which a route is guarded.
type guardedBy struct {
	params  []string
	pattern string
}

// forgotten returns what is wrong with a route that is not guarded and has some path
// parameters, where others are guarded by some.
func forgotten(seen SeenRoute, by []guardedBy) (faults []string) {
	for _, other := range by {
		names := other.params
		isAnother := func(name string) bool {
			return !slices.Contains(seen.Params, name) ||
				isVague(name) && segmentBefore(name, seen.Pattern) != segmentBefore(name, other.pattern)
		}
		if len(names) == 0 || slices.ContainsFunc(names, isAnother) {
			continue
		}
		fault := fmt.Sprintf("it declares %s, by which other routes are guarded, and is not: add the middleware before the route, or Unguarded in its place", quoted(names))
		if !slices.Contains(faults, fault) {
			faults = append(faults, fault)
		}
	}
	return faults
}

// paramsBehind returns the path parameters of the routes behind a guard.
func paramsBehind(g *Guard, routes []SeenRoute) (names []string) {
	for _, seen := range routes {
		if slices.Contains(seen.Guards, g) {
			names = append(names, seen.Params...)
		}
	}
	return names
}

func count(names []string, name string) (n int) {
	for _, other := range names {
		if other == name {
			n++
		}
	}
	return n
}

// anyMethod says what is wrong with a route for all methods behind a guard that has requests
// processed once. Where a framework shows it as a route for each method it is said of GET's.
func anyMethod(seen SeenRoute, routes []SeenRoute) (fault string) {
	guards := slices.Clone(seen.Guards)
	for _, before := range seen.Before {
		guards = append(guards, before.Guards...)
	}
	isTraced := func(other SeenRoute) bool { return other.Method == http.MethodTrace && other.Pattern == seen.Pattern }
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
