package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// report adds up what many worlds have come to.
type report struct {
	worlds, broken int
	lived          time.Duration
	verdict        verdict
	counts         map[string]int
}

func (r *report) add(w *world, v verdict, lived time.Duration) {
	r.worlds++
	r.lived += lived
	r.broken += len(v.found)
	o := &r.verdict
	o.grants += v.grants
	o.shared += v.shared
	o.permits += v.permits
	o.heavy += v.heavy
	o.windows += v.windows
	o.undecided += v.undecided
	o.held += v.held
	o.idle, o.late = max(o.idle, v.idle), max(o.late, v.late)
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	for name, n := range w.counts {
		r.counts[name] += n
	}
}

// String is the report in Markdown.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, "| fault | times |")
	fmt.Fprintln(&b, "|---|--:|")
	for _, name := range slices.Sorted(maps.Keys(r.counts)) {
		fmt.Fprintf(&b, "| %s | %d |\n", name, r.counts[name])
	}
	v := r.verdict
	fmt.Fprintf(&b, "\n- seeds: %d; simulated time: %v; locks taken: %d (shared %d, permits %d, several permits %d), held for %v\n", r.worlds, r.lived.Round(time.Second), v.grants, v.shared, v.permits, v.heavy, v.held.Round(time.Second))
	fmt.Fprintf(&b, "- dedup windows: %d; histories not decided within %v: %d\n", v.windows, decideWithin, v.undecided)
	fmt.Fprintf(&b, "- longest wait for a free lock in calm times: %v\n", v.idle.Round(time.Millisecond))
	fmt.Fprintf(&b, "- broken promises: %d\n", r.broken)
	return b.String()
}
