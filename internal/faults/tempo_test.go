package faults

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A long run has the machine for itself and checks that everything works again soon.
// The one that injects each fault once shows, on a machine that may be busy with
// anything, that no promise is broken and that everything works again in the end: the
// simulation in fake time asks how soon.

// patience ends a run in which something hangs. Virtual machines have been seen to stand
// still for two minutes.
const patience = 5 * time.Minute

// stuckAfter is how long beyond a lease a lock may be out of reach in a long run.
const stuckAfter = 5 * time.Second

// strict says that bounds in time count.
func strict() bool { return *longFor > 0 }

// atMost is a bound in a long run, and patience where time does not count.
func atMost(d time.Duration) time.Duration {
	if strict() {
		return d
	}
	return patience
}

// pick is one of two values, for a long run and for a short one.
func pick[T any](long, short T) T {
	if strict() {
		return long
	}
	return short
}

// between is how long the machine ran between two times, as far as it was watched.
func between(stalls *redistest.Stalls, from, to int64) time.Duration {
	if stalls == nil {
		return time.Duration(to - from)
	}
	at, read := now(), time.Now()
	return stalls.Without(read.Add(time.Duration(from-at)), read.Add(time.Duration(to-at)))
}
