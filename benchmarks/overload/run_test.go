package overload

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// second is what happened in one.
type second struct{ offered, granted, units float64 }

// isGood says that nearly all who asked got a lock. Some meet at a key by chance.
func (s second) isGood() bool { return s.granted >= 0.93*s.offered }

// wellAfter is how many good seconds in a row are a recovery.
const wellAfter = 8

// result is what a row of the table says.
type result struct {
	warm, spike, after second  // means
	recovery           float64 // seconds after the spike; -1: not in the time that it was given
	given              float64 // that time
	dials              int64
	compensating, lost int64
}

// measure offers a row to a library, in a bubble. What it begins ends with the process.
func measure(t *testing.T, lib library, r row) result {
	ctx, p := t.Context(), r.phases()
	var servers []*server
	for range r.servers() {
		servers = append(servers, newServer(t))
	}
	l := &load{row: r, phases: p, counts: &counts{}}
	for i := range r.processes {
		one, err := lib.open(r, servers, l.counts)
		if err != nil {
			t.Fatal(err)
		}
		l.lockers = append(l.lockers, one)
		for j := range r.held {
			if err := one.hold(ctx, fmt.Sprint("held", i, "-", j)); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.begin(ctx, servers)
	seconds, recovery := watch(l, servers)
	out := result{recovery: recovery, given: (p.all - p.warm - p.spike).Seconds()}
	out.warm = mean(seconds, 2*time.Second, p.warm)
	out.spike = mean(seconds, p.warm, p.warm+p.spike)
	out.after = mean(seconds, p.warm+p.spike, p.all)
	if r.neverRecovers() {
		out.spike = mean(seconds, p.warm, p.all)
	}
	for _, s := range servers {
		out.dials += s.dials.Load()
	}
	out.compensating, out.lost = l.counts.compensating.Load(), l.counts.lost.Load()
	return out
}

// watch notes each second, until all is well or time is up.
func watch(l *load, servers []*server) (seconds []second, recovery float64) {
	began, spikeEnd := time.Now(), l.phases.warm+l.phases.spike
	var before second
	good := 0
	for at := time.Second; at <= l.phases.all; at += time.Second {
		time.Sleep(time.Until(began.Add(at)))
		now := second{offered: float64(l.counts.offered.Load()), granted: float64(l.counts.granted.Load())}
		for _, s := range servers {
			now.units += float64(s.units.Load()) / unit
		}
		one := second{now.offered - before.offered, now.granted - before.granted, now.units - before.units}
		seconds, before = append(seconds, one), now
		if at <= spikeEnd || l.row.neverRecovers() {
			continue
		}
		if good++; !one.isGood() {
			good = 0
		}
		if good == wellAfter {
			return seconds, (at - spikeEnd).Seconds() - wellAfter
		}
	}
	return seconds, -1
}

// mean is that of the seconds between two times.
func mean(seconds []second, from, to time.Duration) (m second) {
	part := seconds[min(len(seconds), int(from.Seconds())):min(len(seconds), int(to.Seconds()))]
	for _, s := range part {
		m.offered, m.granted, m.units = m.offered+s.offered, m.granted+s.granted, m.units+s.units
	}
	n := math.Max(1, float64(len(part)))
	return second{m.offered / n, m.granted / n, m.units / n}
}
