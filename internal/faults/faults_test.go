//go:build go1.25

package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// run is one topology with its crew.
type run struct {
	top       *topology
	crew      *crew
	nemesis   *nemesis
	lastToken map[string]int64
	stalls    *redistest.Stalls // of a long run
}

func startRun(tb testing.TB, start func(testing.TB) *topology, seed uint64) *run {
	tb.Helper()
	top := start(tb)
	chosen := regexp.MustCompile(*only)
	top.faults = slices.DeleteFunc(top.faults, func(f fault) bool { return !chosen.MatchString(f.name) })
	c := startCrew(tb, top, seed)
	r := &run{
		top: top, crew: c, lastToken: map[string]int64{},
		nemesis: &nemesis{tb: tb, top: top, crew: c, random: rand.New(rand.NewPCG(seed, uint64(len(top.faults))))},
	}
	if strict() {
		r.stalls = redistest.WatchStalls(tb, persistent...)
	}
	return r
}

// injectAll injects each fault once, or goes on at random until a time, and returns
// what came of them, in the order of the topology's faults.
func (r *run) injectAll(until time.Time) []result {
	tb := r.nemesis.tb
	tb.Helper()
	results := make([]result, len(r.top.faults))
	if len(results) == 0 {
		return nil
	}
	if !strict() {
		for i, f := range r.top.faults {
			results[i] = r.round(f)
			if results[i].stuck > 0 {
				break // what is stuck once holds up every further round
			}
		}
		return results
	}
	for {
		for _, i := range r.nemesis.random.Perm(len(r.top.faults)) {
			if time.Now().Add(longestRound).After(until) {
				return results
			}
			results[i].add(r.round(r.top.faults[i]))
		}
	}
}

// longestRound is the time that a long run leaves for its last round.
const longestRound = 12 * time.Second

// end sends the crew home and returns what is left of it.
func (r *run) end() []string {
	tb := r.nemesis.tb
	tb.Helper()
	leaked := r.crew.leave()
	return append(leaked, awaitNone(patience, func() []string { return r.top.connections(tb) })...)
}

// TestFaults injects every fault of every topology once, or, with -faults.for, goes
// on at random for that long and prints what came of it.
func TestFaults(t *testing.T) {
	report := newReport(*seed)
	began := time.Now()
	var runs sync.WaitGroup
	turns := make(chan struct{}, 2) // at once, for they mostly wait; more of them starve one another on two cores
	for _, top := range topologies {
		if *beside != "" && top.name == "tasks" {
			continue // an older worker runs none
		}
		run := func() {
			t.Run(top.name, func(t *testing.T) {
				r := startRun(t, top.start, *seed)
				results := r.injectAll(began.Add(time.Duration(top.until * float64(*longFor))))
				leaked := r.end()
				for _, leak := range leaked {
					t.Errorf("leaked: %s", leak)
				}
				report.add(r, results, len(leaked))
			})
		}
		if strict() {
			run()
		} else {
			runs.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				run()
			})
		}
	}
	runs.Wait()
	if strict() {
		fmt.Fprint(os.Stdout, report)
	} else {
		t.Logf("after %v:\n%s", time.Since(began).Round(time.Second), report)
	}
}
