package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// bench runs rows.
type bench struct {
	rounds    int
	roundTime time.Duration
	holdTime  time.Duration // how long held locks are watched
	quick     bool          // a look, no measurement
	divide    int           // locks and cycles that are counted, for tests
	libraries []string      // only these, unless empty
	log       io.Writer

	// Of the row that runs.
	server *redistest.Server
	redis  observer
}

// warmUp is how long a round runs before it is measured.
func (b *bench) warmUp() time.Duration { return max(b.roundTime/5, 100*time.Millisecond) }

// row is one thing to measure.
type row struct {
	name      string
	title     string
	libraries []string // that can run it
	base      string   // the one that ratios refer to, or ""
	columns   []figure // of the table; the first one is what ratios compare
	maxRounds int      // unless 0; for rows that take long and vary little
	needs     string   // a program, without which the row is left out
	minutes   bool     // it takes some, and is left out of a look
	measure   func(ctx context.Context, b *bench, lib library) (figures, error)
}

var everyLibrary = []string{floorName, latchkeyName, redislockName, redsyncName, rueidislockName}

func allRows() []row {
	return append([]row{
		uncontended(1), uncontended(16), uncontended(128), obedient(1), distant(1), distant(16), distant(128),
		hotKey(64), hotKey(256), fourTimes16(),
		waiting(2), waiting(8), waiting(32),
		handoff(),
		instructions(), merged(),
		heldLocks("held-10000", 10_000, 3*time.Second, latchkeyName, redislockName, rueidislockName),
		heldLocks("held-100000", 100_000, 3*time.Second, latchkeyName),
		heldUntilKilled("held-1k", 1000, 3*time.Second, 3*time.Second),
		heldUntilKilled("held-1m", 1_000_000, 30*time.Second, 2*time.Minute),
		idempotent(16), limited(40, 4, 10, 50*time.Millisecond),
	}, slices.Concat(ginRows(), formRows(), onceRows())...)
}

// selectRows returns the rows whose names begin with one of the given ones, or
// all.
func selectRows(names []string) ([]row, error) {
	all := allRows()
	var chosen []row
	for _, r := range all {
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return r.name == n || strings.HasPrefix(r.name, n+"-") }) {
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 {
		var known []string
		for _, r := range all {
			known = append(known, r.name)
		}
		return nil, fmt.Errorf("no row %q: there are %s", strings.Join(names, ","), strings.Join(known, ", "))
	}
	return chosen, nil
}

// measured is a row with its rounds, by library.
type measured struct {
	row
	order  []string // of the libraries
	rounds map[string][]figures
	failed map[string][]error // rounds of peers, which count for nothing
}

// run measures a row.
func (b *bench) run(ctx context.Context, r row) (m measured, err error) {
	server, err := redistest.Launch("")
	if err != nil {
		return m, err
	}
	b.server, b.redis = server, observe(server.Addr())
	defer func() { err = firstError(err, b.redis.close(), server.Close()) }()

	m = measured{row: r, rounds: map[string][]figures{}, failed: map[string][]error{}}
	for _, name := range r.libraries {
		if len(b.libraries) == 0 || slices.Contains(b.libraries, name) {
			m.order = append(m.order, name)
		}
	}
	rounds := b.rounds
	if r.maxRounds > 0 {
		rounds = min(rounds, r.maxRounds)
	}
	for round := range rounds {
		for i := range m.order {
			name := m.order[(i+round)%len(m.order)]
			f, err := b.turn(ctx, r, name)
			result := f.line(r.columns)
			switch {
			case err != nil && (isOurs(name) || ctx.Err() != nil):
				return m, fmt.Errorf("%s, %s: %w", r.name, name, err)
			case err != nil: // the rounds of the others are good
				m.failed[name] = append(m.failed[name], err)
				result = fmt.Sprint("FAILED: ", err)
			}
			fmt.Fprintf(b.log, "%-16s %d/%d  %-19s %s\n", r.name, round+1, rounds, name, result)
			m.rounds[name] = append(m.rounds[name], f)
		}
	}
	return m, nil
}

// turn is one round of one library. One that fails has no figures.
func (b *bench) turn(ctx context.Context, r row, name string) (figures, error) {
	lib, err := findLibrary(name)
	if err != nil {
		return nil, err
	}
	if err := b.redis.reset(ctx); err != nil {
		return nil, err
	}
	f, err := r.measure(ctx, b, lib)
	if err != nil {
		return nil, err
	}
	for k, v := range f {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			delete(f, k) // nothing was done in this round, so nothing has a cost
		}
	}
	return f, nil
}

// violations is how often a lock did not exclude, in all rounds.
func (m measured) violations() (n float64) {
	for _, rounds := range m.rounds {
		for _, f := range rounds {
			n += f[violationCount]
		}
	}
	return n
}

// of returns what a library measured in each round, NaN where it has not.
func (m measured) of(library string, what figure) []float64 {
	var values []float64
	for _, f := range m.rounds[library] {
		v, ok := f[what]
		if !ok {
			v = math.NaN()
		}
		values = append(values, v)
	}
	return values
}

// median is a library's median over the rounds, NaN where there is none.
func (m measured) median(library string, what figure) float64 { return median(m.of(library, what)) }

// ratio compares two libraries: the median of the ratios in each round, for what
// disturbs a round disturbs both.
func (m measured) ratio(library, base string, what figure) float64 {
	return median(ratios(m.of(library, what), m.of(base, what)))
}

func ratios(a, b []float64) []float64 {
	var all []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			all = append(all, a[i]/b[i])
		}
	}
	return all
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
