package ginlock

import "github.com/latchkey-go/latchkey/internal/guard"

// Report is what is guarded, and by what.
type Report []Route

// Route is a route of a [Report].
type Route struct {
	// Method and Pattern are the router's.
	Method, Pattern string
	// Guards are by what it is guarded, outermost first; none when it is not.
	Guards []string
	// Passed are guards that let its requests pass, because it does not declare their path parameter.
	Passed []string
	// Faults are what looks wrong, each with what to do about it.
	Faults []string
	// Unguarded says that the function of that name was given to the route.
	Unguarded bool
}

// String is a table for the log, with a line for each route, and one for each fault.
func (r Report) String() string { return guard.Table(r) }

// Err returns all faults, for the start of a program or a test, or nil when there are none.
func (r Report) Err() error { return guard.Faults(r) }
