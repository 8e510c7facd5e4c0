package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// fourTimes16 is the row of four processes with 16 goroutines each that want
// the same lock and hold it for a millisecond: a service under load.
func fourTimes16() row {
	r := contention(4, 16, section{Sleep: time.Millisecond}, wants{})
	r.name = "hot-4x16"
	r.title = "One hot key, 4 processes of 16 goroutines, 1 ms inside"
	r.columns = []figure{cyclesPerSecond, commandsPer, redisCPU, fairness, neverServed, waitP50, waitP99, waitMax}
	return r
}

// waiting is the row of n processes with one goroutine each: what a cycle costs
// Redis must not depend on how many wait.
func waiting(n int) row {
	r := contention(n, 1, section{Spin: 20 * time.Microsecond}, wants{})
	r.name = fmt.Sprintf("waiting-%d", n)
	r.title = fmt.Sprintf("One hot key, %d processes of 1 goroutine, 20 µs inside", n)
	r.columns = []figure{commandsPer, redisCPU, cyclesPerSecond, fairness, neverServed, waitP50, waitP99, waitMax}
	return r
}

// contention is a row of processes that dispute keys.
func contention(processes, goroutines int, s section, w wants) row {
	return row{
		libraries: everyLibrary,
		base:      floorName,
		measure: func(ctx context.Context, b *bench, lib library) (figures, error) {
			var orders []order
			for n := range processes {
				orders = append(orders, order{
					Job: "contend", Library: lib.name, Addr: b.server.Addr(), Number: n, Goroutines: goroutines, Section: s, Wants: w,
				})
			}
			c, err := b.contest(ctx, orders)
			return c.figures(lib), err
		},
	}
}

// contest is what processes did in a round.
type contest struct {
	tallies    []tally
	window     window
	violations int64
}

// contest has processes work for a round.
func (b *bench) contest(ctx context.Context, orders []order) (contest, error) {
	c, err := startChildren(orders)
	if err != nil {
		return contest{}, err
	}
	defer c.unmap()
	sleep(ctx, b.warmUp())
	var done contest
	done.window, err = b.window(ctx, c.arena, func() {})
	perProcess, ending := finish[[]tally](c)
	done.tallies, done.violations = slices.Concat(perProcess...), c.violations.Load()
	return done, firstError(err, ending)
}

func (c contest) figures(lib library) figures {
	f := summarize(c.tallies, c.window.elapsed)
	c.window.costs(lib, f)
	f[violationCount] = float64(c.violations)
	return f
}

// contend is what each of them does.
func contend(o order, lib library, a *arena, ready func(), end <-chan struct{}) (any, error) {
	l, err := lib.open(o.Addr, settings{})
	if err != nil {
		return nil, err
	}
	workers := make([]*worker, o.Goroutines)
	for i := range workers {
		workers[i] = &worker{
			spots:   o.Wants.spots(a, o.Number*o.Goroutines+i),
			section: o.Section.run,
		}
	}
	ready()
	stop := startWorkers(workers, l, a)
	<-end
	stop()
	var tallies []tally
	for _, w := range workers {
		tallies = append(tallies, w.tally)
	}
	return tallies, l.close()
}
