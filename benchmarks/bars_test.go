package main

import (
	"strings"
	"testing"
)

// fake is a measured row with one figure of some libraries.
func fake(name string, what figure, rounds map[string][]float64) measured {
	m := measured{row: row{name: name, columns: []figure{what}, base: floorName}, rounds: map[string][]figures{}}
	for _, library := range append([]string{bareName, backgroundName}, everyLibrary...) {
		for _, v := range rounds[library] {
			m.rounds[library] = append(m.rounds[library], figures{what: v})
		}
		if len(rounds[library]) > 0 {
			m.order = append(m.order, library)
		}
	}
	return m
}

// farAway adds what a round trip was in each round.
func farAway(m measured, trips ...float64) measured {
	for i, f := range m.rounds[backgroundName] {
		f[roundTripP50] = trips[i]
	}
	return m
}

func TestRatioIsTakenWithinARound(t *testing.T) {
	// The machine was half as fast in the second round, and ten times in the third.
	m := fake("x", cyclesPerSecond, map[string][]float64{latchkeyName: {20, 10, 220}, floorName: {10, 5, 100}})
	if got := m.ratio(latchkeyName, floorName, cyclesPerSecond); got != 2 {
		t.Errorf("ratio %v, want 2", got)
	}
}

func TestJudge(t *testing.T) {
	judged := func(m ...measured) map[string]verdict {
		r := results{}
		for _, m := range m {
			r[m.name] = m
		}
		out := map[string]verdict{}
		for _, v := range judge(r, bars()) {
			out[v.Row+": "+v.Text] = v
		}
		return out
	}
	for _, c := range []struct {
		rows []measured
		bar  string
		by   string // "" for met
	}{
		{[]measured{fake("uncontended-16", cyclesPerSecond, map[string][]float64{latchkeyName: {17}, floorName: {10}})},
			"uncontended-16: ≥ 1.7 × the floor's cycles/s", ""},
		{[]measured{fake("uncontended-16", cyclesPerSecond, map[string][]float64{latchkeyName: {8.5}, floorName: {10}})},
			"uncontended-16: ≥ 1.7 × the floor's cycles/s", "50 %"},
		{[]measured{fake("hot-64", cyclesPerSecond, map[string][]float64{latchkeyName: {150}, redsyncName: {10}, redislockName: {20}})},
			"hot-64: ≥ 10 × the best peer's cycles/s", "25 %"},
		{[]measured{fake("hot-64", cyclesPerSecond, map[string][]float64{latchkeyName: {110}, redsyncName: {10}, floorName: {1000}})},
			"hot-64: ≥ 10 × the best peer's cycles/s", ""}, // the floor is no peer
		{[]measured{fake("hot-64", commandsPer, map[string][]float64{latchkeyName: {0.2}})},
			"hot-64: commands a cycle ≤ 0.1", "100 %"},
		{[]measured{fake("hot-256", neverServed, map[string][]float64{latchkeyName: {0, 0, 3}})},
			"hot-256: never served: none", ""},
		{[]measured{fake("hot-256", neverServed, map[string][]float64{latchkeyName: {3}})},
			"hot-256: never served: none", "3"},
		{[]measured{
			fake("waiting-2", commandsPer, map[string][]float64{latchkeyName: {2}}),
			fake("waiting-32", commandsPer, map[string][]float64{latchkeyName: {3}}),
		}, "waiting-32: commands a cycle ≤ 1.2 × those with 2 processes", "25 %"},
		{[]measured{fake("held-10000", clientCPUMinute, map[string][]float64{latchkeyName: {2}, rueidislockName: {10}})},
			"held-10000: ≤ 0.2 × rueidislock's client CPU", ""},
		{[]measured{fake("keys-2-crossing", waitMax, map[string][]float64{latchkeyName: {3}, redislockName: {2}})},
			"keys-2-crossing: ≤ 1 × redislock's longest wait", "50 %"},
		{[]measured{fake("gin-16", requestsPerSecond, map[string][]float64{backgroundName: {1.3, 2.8, 4.5}, redislockName: {1, 2, 3}})},
			"gin-16: with BackgroundRelease ≥ 1.4 × requests/s by hand-written redislock calls", ""},
		{[]measured{farAway(fake("gin-distant-1", requestP50, map[string][]float64{bareName: {1, 2, 3}, backgroundName: {3.2, 8.4, 5.4}}), 2, 4, 2)},
			"gin-distant-1: with BackgroundRelease at most 1.1 round trips longer than unguarded", "9.09 %"},
	} {
		v, ok := judged(c.rows...)[c.bar]
		if !ok || v.By != c.by || v.Met != (c.by == "") {
			t.Errorf("%s: found %v, %+v, want missed by %q", c.bar, ok, v, c.by)
		}
	}
	if v := judged(fake("hot-64", fairness, map[string][]float64{redsyncName: {1}})); len(v) > 0 {
		t.Errorf("judged without a figure of ours: %v", v)
	}
}

func TestEveryBarHasARowThatMeasuresIt(t *testing.T) {
	names := map[string]bool{}
	for _, r := range allRows() {
		names[r.name] = true
	}
	for _, b := range bars() {
		if !names[b.row] {
			t.Errorf("no row %s for the bar %q", b.row, b.text)
		}
	}
}

func TestSelectRows(t *testing.T) {
	for _, c := range []struct {
		names string
		want  int
	}{{"", 39}, {"hot", 3}, {"hot-64", 1}, {"uncontended-1", 1}, {"held,gin", 10}, {"keys", 4}} {
		got, err := selectRows(split(c.names))
		if err != nil || len(got) != c.want {
			t.Errorf("%q: %d rows, %v, want %d", c.names, len(got), err, c.want)
		}
	}
	if _, err := selectRows([]string{"cold"}); err == nil || !strings.Contains(err.Error(), "hot-64") {
		t.Errorf("an unknown row gave %v, want an error with those that there are", err)
	}
}

// The pages open with what a user asks; each missed bar has its reason.
func TestPagesOfASavedRun(t *testing.T) {
	r, err := load("results/results.json")
	if err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string]string{
		r.table():    "| requests a second of a gin route, 1 connection |",
		r.barTable(): "| why |",
	} {
		if first, _, _ := strings.Cut(page, "## The rows"); !strings.Contains(first, want) {
			t.Errorf("no %q in:\n%.400s", want, first)
		}
	}
	background := verdict{Row: "gin-16", Text: "with BackgroundRelease ≥ 1.4"}
	if got := background.why(); got != "in the background" {
		t.Errorf("why: %q", got)
	}
	if got := (verdict{Row: "gin-16", Text: "≥ 1.3"}).why(); got != "16 callers" {
		t.Errorf("why: %q", got)
	}
}
