package simulation

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

const (
	cycles     = 2
	mostShown  = 8
	repetition = 5 // of a seed that is given
)

// TestSimulation runs a fixed set of seeds; with -simulation.seed that one, several
// times; with -simulation.for new ones for that long.
func TestSimulation(t *testing.T) {
	began := time.Now()
	report := &report{}
	switch {
	case *oneSeed != 0:
		for range repetition {
			runSeed(t, *oneSeed, report)
		}
	case *longFor > 0:
		for seed := uint64(began.UnixNano()); time.Since(began) < *longFor; seed++ {
			runSeed(t, seed, report)
		}
		fmt.Fprint(os.Stdout, report)
		return
	default:
		for _, seed := range seeds {
			runSeed(t, seed, report)
		}
	}
	t.Logf("after %v:\n%s", time.Since(began).Round(time.Millisecond), report)
}

// seeds are those of a plain run: short and long leases, all that hear and a mixed fleet, and a
// world of crowds, in which a writer came in beside a reader.
var seeds = []uint64{3, 4, 7, 16}

// runSeed lives through one world and judges it.
func runSeed(t *testing.T, seed uint64, report *report) {
	t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
		w := newWorld(seed)
		began := time.Now()
		lived := w.live(t, cycles)
		v := w.judge()
		t.Logf("%v; lived %v in %v; %d grants, held for %v, longest idle %v", w, lived.Round(time.Second),
			time.Since(began).Round(time.Millisecond), v.grants, v.held.Round(time.Second), v.idle)
		report.add(w, v, lived)
		if len(v.found) == 0 {
			return
		}
		t.Errorf("%v\nto run it again:\n\tgo test ./internal/simulation -run TestSimulation -simulation.seed=%d\n%d broken promises, the first of which are:\n%s\nthis had happened:\n%s",
			w, seed, len(v.found), strings.Join(v.found[:min(len(v.found), mostShown)], "\n"), strings.Join(w.story, "\n"))
	})
}

// eachSeed tests so many seeds; with -simulation.seed that one, several times; with -simulation.for new ones, for a
// quarter of that long.
func eachSeed(t *testing.T, n uint64, test func(t *testing.T, seed uint64)) {
	run := func(seed uint64) { t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { test(t, seed) }) }
	began := time.Now()
	switch {
	case *oneSeed != 0:
		for range repetition {
			run(*oneSeed)
		}
	case *longFor > 0:
		for seed := uint64(began.UnixNano()); time.Since(began) < *longFor/4; seed++ {
			run(seed)
		}
	default:
		for seed := range n {
			run(seed)
		}
	}
}

// failOn fails the test of a world with broken promises.
func (w *world) failOn(t *testing.T) {
	if len(w.broken) > 0 {
		t.Errorf("%v\n%s\nthis had happened:\n%s", w, strings.Join(w.broken[:min(len(w.broken), mostShown)], "\n"), strings.Join(w.story, "\n"))
	}
}
