package guard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Route is a route as Check has found it.
type Route struct {
	Method, Pattern string
	Guards, Passed  []string
	Faults          []string
	Unguarded       bool
}

// Row is the adapters' type for a Route: each declares it, so that its documentation shows the
// fields.
type Row interface {
	~struct {
		Method, Pattern string
		Guards, Passed  []string
		Faults          []string
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
		case len(route.Passed) > 0:
			by += " by " + strings.Join(route.Passed, " nor ") + ", which it does not declare"
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

// about says by what is locked, in which form, and when not.
func (g *Guard) about(cfg Config, reads keyfunc.Description) string {
	text := cmp.Or(cfg.About, strings.Join(reads.Parts, " and "), "the constant "+strconv.Quote(reads.Name))
	if g.all {
		text = "all of " + text
	}
	var notes []string
	if form := cfg.Forms.Describe(cfg.Options...); form != "" {
		notes = append(notes, form)
	}
	if cfg.Idempotent != nil {
		notes = append(notes, "idempotent")
		if isChosenByClients(keyfunc.Describe(cfg.Idempotent.Scope, nil).Parts) {
			notes = append(notes, "in a scope that clients choose, unless a proxy of yours sets it")
		}
	}
	if reads.Optional {
		notes = append(notes, "optional")
	}
	if cfg.FailOpen {
		notes = append(notes, "FailOpen")
	}
	if notes == nil {
		return text
	}
	return text + " (" + strings.Join(notes, ", ") + ")"
}

// isChosenByClients reports whether all parts are what any client can write: unlike a cookie or an Authorization, for which it
// needs somebody's secret.
func isChosenByClients(parts []string) bool {
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(part string) bool {
		kind, name, _ := strings.Cut(part, ` "`)
		return name == `Authorization"` || !slices.Contains([]string{"header", "query parameter", "path parameter", "JSON field"}, kind)
	})
}

// says is by what the guard guards a route, and what the program has to do for it.
func (g *Guard) says() string {
	if g.config.Idempotent == nil && adapter.ReleasesInBackground(g.locker(), g.options...) {
		return g.config.About + " (BackgroundRelease: close the Locker at the end)"
	}
	return g.config.About
}
