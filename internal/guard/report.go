package guard

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Route is a route as Check has found it.
type Route struct {
	Method, Pattern string
	Guards, Faults  []string
	Unguarded       bool
}

// Row is the adapters' type for a Route: each declares it, so that its documentation shows the
// fields.
type Row interface {
	~struct {
		Method, Pattern string
		Guards, Faults  []string
		Unguarded       bool
	}
}

func rowsOf[R Row](routes []Route) []R {
	rows := make([]R, len(routes))
	for i, route := range routes {
		rows[i] = R(route)
	}
	return rows
}

// Table has a line for each route, and one for each fault.
func Table[R Row](report []R) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range report {
		route, by := Route(row), "not guarded"
		switch {
		case len(route.Guards) > 0:
			by = "by " + strings.Join(route.Guards, ", then by ")
		case route.Unguarded:
			by += ", on purpose"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", route.Method, route.Pattern, by)
		for _, fault := range route.Faults {
			fmt.Fprintf(table, "\t\t! %s\n", fault)
		}
	}
	_ = table.Flush() // a strings.Builder takes everything
	return text.String()
}

// Faults returns all faults, or nil when there are none.
func Faults[R Row](report []R) error {
	var all []error
	for _, row := range report {
		route := Route(row)
		for _, fault := range route.Faults {
			all = append(all, fmt.Errorf("latchkey: the route %s: %s", strconv.Quote(strings.TrimSpace(route.Method+" "+route.Pattern)), fault))
		}
	}
	return errors.Join(all...)
}
