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

// Check says what is guarded of some routes, and what looks wrong.
func Check[R Row](routes []SeenRoute) []R {
	routes = slices.Clone(routes)
	slices.SortStableFunc(routes, func(a, b SeenRoute) int {
		return cmp.Or(strings.Compare(a.Pattern, b.Pattern), strings.Compare(a.Method, b.Method))
	})
	c := &check{routes: routes, report: make([]Route, len(routes)), keys: vagueKeys{}, used: map[*Guard]bool{}}
	for i, seen := range routes {
		c.report[i] = Route{Method: seen.Method, Pattern: seen.Pattern, Unguarded: seen.Unguarded}
		c.guards(i, seen)
	}
	for i, seen := range routes {
		c.forgotten(i, seen)
		c.unused(i, seen)
	}
	return rowsOf[R](c.report)
}

// check is what was found about the routes so far.
type check struct {
	routes []SeenRoute
	report []Route
	keys   vagueKeys
	by     []guardedBy     // path parameters
	used   map[*Guard]bool // those by a path parameter which some route declares, more or less
}

// guardedBy are the path parameters by which a route is guarded.
type guardedBy struct {
	params  []string
	pattern string
}

// fault adds a fault to a route, if there is one.
func (c *check) fault(i int, fault string) {
	if fault != "" {
		c.report[i].Faults = append(c.report[i].Faults, fault)
	}
}

// guards finds the guards of a route.
func (c *check) guards(i int, seen SeenRoute) {
	if seen.TooLate {
		c.fault(i, "a guard comes after the handler, which then runs unlocked: put it before")
	}
	for _, before := range seen.Before {
		for _, g := range before.Guards {
			if key := g.on(before.Params); key.Err == nil {
				c.guarded(i, seen, g, key)
			} else {
				c.fault(i, fmt.Sprintf("the guard by %s runs before the route is known, and has all refused with 500: %s", g.config.About, before.Fix))
			}
		}
	}
	for _, g := range seen.Guards {
		params, fault := g.at(seen)
		switch {
		case fault != "":
			c.fault(i, string(fault)+" (its requests are refused with 500)")
		case params != nil:
			g.behind.Store(declaring)
			c.guarded(i, seen, g, g.on(seen.Params))
			c.by = append(c.by, guardedBy{params, seen.Pattern})
		default:
			c.report[i].Passed = append(c.report[i].Passed, g.says())
			continue
		}
		c.used[g] = true
	}
	c.fault(i, anyMethod(seen, c.routes))
}

// guarded notes that a guard guards the route, by a key.
func (c *check) guarded(i int, seen SeenRoute, g *Guard, key keyfunc.Description) {
	c.report[i].Guards = append(c.report[i].Guards, g.says())
	c.fault(i, c.keys.fault(seen, g.locker(), key))
}

// forgotten finds a route that is not guarded, and declares the path parameters by which another
// one is. Unguarded says that it is so on purpose.
func (c *check) forgotten(i int, seen SeenRoute) {
	switch route := c.report[i]; {
	case seen.Unguarded && len(route.Guards) > 0:
		c.fault(i, "it is declared Unguarded, and is guarded: leave one of them out")
		return
	case seen.Unguarded, len(route.Guards)+len(route.Faults) > 0:
		return
	}
	for _, other := range c.by {
		isAnother := func(name string) bool {
			return !slices.Contains(seen.Params, name) ||
				isVague(name) && segmentBefore(name, seen.Pattern) != segmentBefore(name, other.pattern)
		}
		if len(other.params) == 0 || slices.ContainsFunc(other.params, isAnother) {
			continue
		}
		fault := fmt.Sprintf("it declares %s, by which other routes are guarded, and is not: "+
			"add the middleware before the route, or Unguarded in its place", quoted(other.params))
		if !slices.Contains(c.report[i].Faults, fault) {
			c.fault(i, fault)
		}
	}
}

// unused finds guards by a path parameter that no route behind them declares, at the first of these
// routes.
func (c *check) unused(i int, seen SeenRoute) {
	for _, g := range seen.Guards {
		if c.used[g] {
			continue
		}
		c.used[g] = true
		var there []string
		for _, other := range c.routes {
			if slices.Contains(other.Guards, g) {
				there = append(there, other.Params...)
			}
		}
		g.behind.CompareAndSwap(unseen, lacking)
		c.fault(i, undeclared("no route behind the guard", g.on(nil).Params, there))
	}
}

// on describes the key where a route declares some path parameters.
func (g *Guard) on(params []string) keyfunc.Description {
	return keyfunc.DescribeSet(g.config.Keys, func(name string) bool { return slices.Contains(params, name) })
}

// at returns the path parameters by which the guard guards a route, nil when it lets it pass,
// or why it refuses every request for it.
func (g *Guard) at(seen SeenRoute) (params []string, fault setupError) {
	key := g.on(seen.Params)
	params = []string{}
	missing := ""
	for _, name := range key.Params {
		switch {
		case isTwice(seen.Params, name):
			return nil, twice("it", name)
		case slices.Contains(seen.Params, name):
			params = append(params, name)
		default:
			missing = cmp.Or(missing, name)
		}
	}
	near := slices.IndexFunc(seen.Params, func(other string) bool { return alike(missing, other) })
	why := ", by which the lock is: guard it by something else"
	switch passes := g.config.Param != "" || errors.Is(key.Err, keyfunc.ErrSkip); {
	case key.Err == nil:
		return params, ""
	case near >= 0:
		return nil, misnamed("it", missing, seen.Params[near])
	case seen.Subtree:
		why = " and is a subtree, in which another router may be: guard the routes of that one"
	case g.config.Strict:
		why = ", which Strict demands"
	case passes:
		return nil, ""
	}
	return nil, setupError(fmt.Sprintf("it does not declare the path parameter %q%s", missing, why))
}

// anyMethod says what is wrong with a route for all methods behind a guard that processes
// requests once. Where a framework shows it as a route for each method it is said of GET's.
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
