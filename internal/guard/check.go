package guard

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Route is a route as Check has found it.
type Route struct {
	// Method and Pattern are the router's.
	Method, Pattern string
	// Guards are by what it is guarded, outermost first; none when it is not.
	Guards []string
	// Faults are what looks wrong, each with what to do about it.
	Faults []string
}

// Report is what is guarded, and by what.
type Report []Route

// String is a table with a line for each route, and one for each fault.
func (r Report) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, route := range r {
		by := "not guarded"
		if len(route.Guards) > 0 {
			by = "by " + strings.Join(route.Guards, ", then by ")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", route.Method, route.Pattern, by)
		for _, fault := range route.Faults {
			fmt.Fprintf(table, "\t\t! %s\n", fault)
		}
	}
	_ = table.Flush() // a strings.Builder takes everything
	return text.String()
}

// Err returns all faults, or nil when there are none.
func (r Report) Err() error {
	var all []error
	for _, route := range r {
		for _, fault := range route.Faults {
			all = append(all, fmt.Errorf("latchkey: the route %s: %s", strconv.Quote(strings.TrimSpace(route.Method+" "+route.Pattern)), fault))
		}
	}
	return errors.Join(all...)
}

// Seen is a route as the adapter shows it.
type Seen struct {
	Method, Pattern string
	Params          []string // path parameters that it declares
	Unrouted        []*Guard // those that run before the router
	Guards          []*Guard // those that run after it, outermost first
	TooLate         bool     // one comes after the handler
	Subtree         bool     // another router may be inside
}

// Check says what is guarded of some routes.
func Check(routes []Seen) Report {
	guarded := map[string]bool{} // parameters by which some routes are
	report := make(Report, len(routes))
	for i, seen := range routes {
		report[i] = Route{Method: seen.Method, Pattern: seen.Pattern}
		if seen.TooLate {
			report[i].Faults = append(report[i].Faults, "a guard comes after the handler, which then runs unlocked: put it before")
		}
		for _, g := range seen.Unrouted {
			if g.config.Param != "" {
				report[i].Faults = append(report[i].Faults, fmt.Sprintf("the guard by the path parameter %q runs before the router, and has all refused with 500: give it to Use, not to Pre", g.config.Param))
				continue
			}
			report[i].Guards = append(report[i].Guards, g.config.About)
		}
		for _, g := range seen.Guards {
			about, fault := g.at(seen)
			if fault != "" {
				report[i].Faults = append(report[i].Faults, fault)
				continue
			}
			if about != "" {
				report[i].Guards = append(report[i].Guards, about)
				guarded[g.config.Param] = true
			}
		}
	}
	for i, seen := range routes {
		if len(report[i].Guards)+len(report[i].Faults) > 0 {
			continue
		}
		for _, name := range seen.Params {
			if guarded[name] {
				report[i].Faults = append(report[i].Faults, fmt.Sprintf(
					"it declares %q, by which other routes are guarded, and is not: add the middleware before the route", name))
			}
		}
	}
	slices.SortStableFunc(report, func(a, b Route) int {
		if c := strings.Compare(a.Pattern, b.Pattern); c != 0 {
			return c
		}
		return strings.Compare(a.Method, b.Method)
	})
	return report
}

// at says by what the guard guards a route, empty when it lets it pass, or why it refuses
// every request for it.
func (g *Guard) at(seen Seen) (about, fault string) {
	name := g.config.Param
	switch {
	case name == "":
		return g.config.About, ""
	case count(seen.Params, name) > 1:
		return "", fmt.Sprintf("it declares the path parameter %q twice, and is refused with 500: give them two names", name)
	case slices.Contains(seen.Params, name):
		return g.config.About, ""
	}
	if near := slices.IndexFunc(seen.Params, func(other string) bool { return alike(name, other) }); near >= 0 {
		return "", fmt.Sprintf("the lock is by the path parameter %q, but it declares %q, and is refused with 500: write one name in both places", name, seen.Params[near])
	}
	if seen.Subtree {
		return "", fmt.Sprintf("it is a subtree and does not declare the path parameter %q, and is refused with 500, for another router may be inside: guard the routes of that one", name)
	}
	if g.config.Strict {
		return "", fmt.Sprintf("it does not declare the path parameter %q, and Strict has it refused with 500", name)
	}
	return "", ""
}

func count(names []string, name string) (n int) {
	for _, other := range names {
		if other == name {
			n++
		}
	}
	return n
}
