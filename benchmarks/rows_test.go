package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// measureForAMoment runs a row, for longer where the moment was too short to do
// anything at all: on a machine that is busy with something else.
func measureForAMoment(t *testing.T, r row) measured {
	for d := 100 * time.Millisecond; ; d *= 10 {
		b := &bench{rounds: 1, roundTime: d, holdTime: 2 * d, divide: 100, log: t.Output()}
		m, err := b.run(t.Context(), r)
		for _, errs := range m.failed {
			err = errors.Join(append(errs, err)...)
		}
		if errors.Is(err, errNoHandOff) && d < time.Second {
			continue
		}
		if len(m.failed) > 0 {
			t.Skipf("a peer did not get through: %v", m.failed)
		}
		if err != nil {
			t.Fatal(err)
		}
		ours := m.rounds[latchkeyName]
		if len(ours) == 0 || d > time.Second {
			return m
		}
		if cycles, counted := ours[0][cyclesPerSecond]; !counted || cycles > 0 {
			return m
		}
	}
}

// Every row runs with every library, for a moment: that it measures something
// and that locks exclude, not how fast.
func TestRows(t *testing.T) {
	redistest.Start(t) // skips where there is no redis-server
	for _, r := range allRows() {
		if r.name == "waiting-32" || r.name == "held-100000" || r.leftOut(true) != "" {
			continue // as the smaller ones, and too much for a test
		}
		t.Run(r.name, func(t *testing.T) {
			m := measureForAMoment(t, r)
			if n := m.violations(); n > 0 {
				t.Errorf("%v violations", n)
			}
			if !slices.Equal(m.order, r.libraries) {
				t.Errorf("measured %v, want %v", m.order, r.libraries)
			}
			for _, library := range m.order {
				f := m.rounds[library][0]
				for _, c := range r.columns {
					if cycles, ok := f[cyclesPerSecond]; ok && cycles == 0 && library != latchkeyName {
						continue // all polled, for the whole moment
					}
					if _, ok := f[c]; !ok {
						t.Errorf("%s: no %s", library, c)
					}
				}
				if f[locksLost] > 0 || library == latchkeyName && f[errorCount] > 0 {
					t.Errorf("%s: %v", library, f)
				}
			}
		})
	}
}

// A peer that fails spoils its own round only; if latchkey fails the run is worth nothing.
func TestRoundThatFails(t *testing.T) {
	redistest.Start(t) // skips where there is no redis-server
	failure := errors.New("out of breath")
	failing := ""
	r := row{name: "a row", libraries: []string{floorName, latchkeyName, redislockName}, columns: []figure{cyclesPerSecond}}
	rounds := 0
	r.measure = func(_ context.Context, _ *bench, lib library) (figures, error) {
		if lib.name == failing && rounds == 0 {
			rounds++
			return nil, failure
		}
		return figures{cyclesPerSecond: 7}, nil
	}
	b := &bench{rounds: 2, log: t.Output()}
	failing = redislockName
	m, err := b.run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	m.write(&table)
	for _, want := range []string{"| redislock | 7 |", "redislock: 1 of 2 rounds failed", failure.Error()} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in the table:\n%s", want, &table)
		}
	}
	failing, rounds = latchkeyName, 0
	if _, err := b.run(t.Context(), r); !errors.Is(err, failure) {
		t.Errorf("latchkey fails: %v", err)
	}
}

func TestProgram(t *testing.T) {
	redistest.Start(t)
	dir := t.TempDir()
	var out bytes.Buffer
	args := "-rows uncontended,hot-64 -libs latchkey,floor -rounds 2 -round-time 20ms -out " + dir +
		" -cpuprofile " + filepath.Join(dir, "cpu.prof") + " -memprofile " + filepath.Join(dir, "mem.prof")
	if err := run(t.Context(), strings.Fields(args), &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| latchkey |", "| floor |", "× floor", ", Redis "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the table:\n%s", want, out.String())
		}
	}
	table, err := os.ReadFile(filepath.Join(dir, "table.md"))
	if err != nil || !strings.Contains(string(table), out.String()) {
		t.Errorf("table.md is not what was printed: %v", err)
	}
	bars, err := os.ReadFile(filepath.Join(dir, "bars.md"))
	if err != nil || !strings.Contains(string(bars), "≥ 0.98 × the floor's cycles/s") {
		t.Errorf("bars.md: %v\n%s", err, bars)
	}
	text, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 4 || len(r.Rows[0].Libraries[0].Rounds) != 2 || len(r.Verdicts) == 0 {
		t.Errorf("results.json: %d rows, %d bars", len(r.Rows), len(r.Verdicts))
	}
	chart, err := os.ReadFile(filepath.Join(dir, "uncontended.svg"))
	if err != nil || !bytes.Contains(chart, []byte("128 goroutines")) || !bytes.Contains(chart, []byte("fill:#FFFFFF")) {
		t.Errorf("uncontended.svg: %v", err)
	}
}

func TestLookLeavesOutWhatTakesMinutes(t *testing.T) {
	redistest.Start(t)
	var log strings.Builder
	if err := run(t.Context(), strings.Fields("-quick -rows held-1m"), t.Output(), &log); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "left out: it takes minutes") {
		t.Errorf("a look at a row that takes minutes: %s", &log)
	}
}

func TestArguments(t *testing.T) {
	for _, args := range []string{"-rows cold", "-libs etcd", "-rounds 0", "-round-time 0s", "-nonsense"} {
		if err := run(t.Context(), strings.Fields(args), t.Output(), t.Output()); err == nil {
			t.Errorf("%s was accepted", args)
		}
	}
}
