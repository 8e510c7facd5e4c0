package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// bar is a demand on what was measured.
type bar struct {
	row  string
	text string
	// read returns what was measured, and what is demanded of it.
	read func(r results) (got, want float64)
	// atMost says that more than what is demanded misses the bar, not less.
	atMost bool
}

// verdict is a bar after a run. The numbers are rounded, for the JSON.
type verdict struct {
	Row  string  `json:"row"`
	Text string  `json:"bar"`
	Got  float64 `json:"measured"`
	Want float64 `json:"demanded"`
	Met  bool    `json:"met"`
	By   string  `json:"missed_by,omitempty"`
}

// results are rows by name.
type results map[string]measured

// bars are the project's goals, in the order of the rows.
func bars() []bar {
	var all []bar
	floor := func(measured) string { return floorName }
	for _, g := range []struct {
		row   string
		times float64
	}{{"uncontended-1", 0.98}, {"uncontended-16", 1.7}, {"uncontended-128", 3}, {"distant-1", 0.97}} {
		all = append(all, atLeastTimes(g.row, g.times, "the floor's cycles/s", cyclesPerSecond, floor))
	}
	rueidis := func(measured) string { return rueidislockName }
	all = append(all, withPlainClient("uncontended-1", 0.85), atLeastTimes("uncontended-16", 1, "rueidislock's cycles/s", cyclesPerSecond, rueidis))
	for _, g := range []struct {
		row   string
		times float64
	}{{"instructions-1", 2}, {"instructions-32", 1.05}} {
		all = append(all, atMostTimes(g.row, g.times, "the floor's", instructionsPer, floor))
	}
	all = append(all, atMost("uncontended-1", 30, allocsPer), atMostTimes("uncontended-128", 0.75, "the floor's Redis CPU", redisCPU, floor))
	for _, name := range []string{"hot-64", "hot-256"} {
		all = append(all,
			atLeastTimes(name, 10, "the best peer's cycles/s", cyclesPerSecond, bestPeer(cyclesPerSecond)),
			atMost(name, 0.1, commandsPer), atLeast(name, 0.98, fairness), atMost(name, 0, neverServed))
	}
	all = append(all,
		atLeastTimes("hot-4x16", 1, "the best peer's cycles/s", cyclesPerSecond, bestPeer(cyclesPerSecond)),
		atMost("hot-4x16", 0.5, commandsPer), atLeast("hot-4x16", 0.95, fairness), atMost("hot-4x16", 200, waitMax),
		steady(commandsPer))
	for _, r := range formRows() {
		peer := func(measured) string { return r.base }
		times := 1.0
		switch {
		case strings.HasSuffix(r.name, "-crossing"):
			times = 0.9
		case strings.HasPrefix(r.name, "permits-"):
			times = 1.1
		}
		all = append(all,
			atLeastTimes(r.name, times, r.base+"'s cycles/s", cyclesPerSecond, peer),
			atMostTimes(r.name, 1, r.base+"'s longest wait", waitMax, peer))
	}
	redislock := func(measured) string { return redislockName }
	return append(all,
		atMostTimes("handoff", 0.7, "rueidislock's p50 from the return", returnP50, rueidis),
		atMostTimes("handoff", 1, "rueidislock's p99", handoffP99, rueidis),
		atMostTimes("held-10000", 0.2, "rueidislock's client CPU", clientCPUMinute, rueidis),
		atMost("held-10000", 650, heapPerLock), atMost("held-10000", 0.01, goroutinesPer), atMost("held-10000", 0, locksLost),
		atMost("held-100000", 0, locksLost),
		atMost("held-1m", 600, heapPerLock), atMost("held-1m", 15, clientCPUMinute), atMost("held-1m", 25, redisCPUMinute),
		atMost("held-1m", 50, otherMax), atLeast("held-1m", 40_000, takenPerSecond), atMost("held-1m", 0, locksLost),
		atLeastTimes("gin-1", 1, byHand, requestsPerSecond, redislock),
		atLeastTimes("gin-16", 1.3, byHand, requestsPerSecond, redislock),
		atLeastTimes("gin-64", 1.8, byHand, requestsPerSecond, redislock),
		inBackground("gin-1", 1.3), inBackground("gin-16", 1.4), inBackground("gin-64", 1.9),
		roundTripsAdded("gin-distant-1", 1.1), roundTripsAdded("gin-distant-16", 1.1), roundTripsAdded("gin-distant-64", 1.1))
}

const byHand = "requests/s by hand-written redislock calls"

// withPlainClient is the bar of latchkey with a client as redis.NewClient makes it.
func withPlainClient(row string, want float64) bar {
	return bar{row: row, text: fmt.Sprintf("with a plain client ≥ %v × the floor's cycles/s", want), read: func(r results) (float64, float64) {
		return r[row].ratio(plainName, floorName, cyclesPerSecond), want
	}}
}

// inBackground is the bar of requests that do not wait for their releases.
func inBackground(row string, want float64) bar {
	return bar{row: row, text: fmt.Sprintf("with BackgroundRelease ≥ %v × %s", want, byHand), read: func(r results) (float64, float64) {
		return r[row].ratio(backgroundName, redislockName, requestsPerSecond), want
	}}
}

// roundTripsAdded is the bar of how much longer such a request takes than one without a lock.
func roundTripsAdded(row string, want float64) bar {
	return bar{row: row, text: fmt.Sprintf("with BackgroundRelease at most %v round trips longer than unguarded", want), atMost: true,
		read: func(r results) (float64, float64) {
			m := r[row]
			var added []float64
			bare, trips := m.of(bareName, requestP50), m.of(backgroundName, roundTripP50)
			for i, p50 := range m.of(backgroundName, requestP50) {
				if i < len(bare) {
					added = append(added, (p50-bare[i])/trips[i])
				}
			}
			return median(added), want
		}}
}

func atLeast(row string, want float64, what figure) bar {
	return bar{row: row, text: fmt.Sprintf("%s ≥ %v", headings[what], want), read: func(r results) (float64, float64) {
		return r[row].median(latchkeyName, what), want
	}}
}

func atMost(row string, want float64, what figure) bar {
	b := atLeast(row, want, what)
	b.text, b.atMost = fmt.Sprintf("%s ≤ %v", headings[what], want), true
	if want == 0 {
		b.text = headings[what] + ": none"
	}
	return b
}

func atLeastTimes(row string, want float64, of string, what figure, base func(measured) string) bar {
	return bar{row: row, text: fmt.Sprintf("≥ %v × %s", want, of), read: func(r results) (float64, float64) {
		return r[row].ratio(latchkeyName, base(r[row]), what), want
	}}
}

func atMostTimes(row string, want float64, of string, what figure, base func(measured) string) bar {
	b := atLeastTimes(row, want, of, what, base)
	b.text, b.atMost = fmt.Sprintf("≤ %v × %s", want, of), true
	return b
}

// steady is the bar that a cycle costs the same however many processes wait.
func steady(what figure) bar {
	return bar{row: "waiting-32", text: headings[what] + " ≤ 1.2 × those with 2 processes", atMost: true,
		read: func(r results) (float64, float64) {
			return median(ratios(r["waiting-32"].of(latchkeyName, what), r["waiting-2"].of(latchkeyName, what))), 1.2
		}}
}

// bestPeer chooses the peer with the greatest median.
func bestPeer(what figure) func(measured) string {
	return func(m measured) string {
		best := ""
		for _, p := range peers {
			if slices.Contains(m.order, p) && (best == "" || m.median(p, what) > m.median(best, what)) {
				best = p
			}
		}
		return best
	}
}

// judge holds the results against the bars, as far as they were measured.
func judge(r results, bars []bar) []verdict {
	var all []verdict
	for _, b := range bars {
		got, want := b.read(r)
		if math.IsNaN(got) {
			continue
		}
		v := verdict{Row: b.row, Text: b.text, Got: round(got), Want: want, Met: got >= want}
		if b.atMost {
			v.Met = got <= want
		}
		if !v.Met {
			v.By = missedBy(got, want)
		}
		all = append(all, v)
	}
	return all
}

func missedBy(got, want float64) string {
	if want == 0 {
		return show(got)
	}
	return show(100*math.Abs(got-want)/want) + " %"
}

// round keeps four digits: more than a benchmark can know.
func round(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	p := math.Pow(10, 4-math.Ceil(math.Log10(math.Abs(x))))
	return math.Round(x*p) / p
}
