package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// worker is one goroutine that takes and releases locks until the run is over.
type worker struct {
	spots   []spot
	section func() // what it does while it holds the lock

	tally
}

// tally is what one worker has measured.
type tally struct {
	Cycles int64           // completed in the measured time
	Waits  []time.Duration // from asking to having, for each acquisition in that time
	Errors int64
	Error  string // the first one
}

// run locks with ctx, which must be cancelled once the run is over.
func (w *worker) run(ctx context.Context, l locker, a *arena) {
	for n := 0; a.phase.Load() != over; n++ {
		at := w.spots[n%len(w.spots)]
		asked := time.Now()
		h, err := at.lock(ctx, l)
		if err != nil {
			if a.phase.Load() == over {
				// Still waiting at the end. Its wait would have been longer
				// still: to leave it out would hide who was served last or never.
				w.Waits = append(w.Waits, time.Since(asked))
				return
			}
			w.failed(err)
			continue
		}
		got := time.Now()
		a.enter(at)
		w.section()
		a.leave(at)
		measured := a.phase.Load() != warmingUp
		if measured {
			w.Waits = append(w.Waits, got.Sub(asked))
		}
		if err := h.unlock(); err != nil {
			w.failed(err)
		} else if measured && a.phase.Load() == measuring {
			w.Cycles++
		}
	}
}

// failed notes an error; the pause keeps a Redis that is gone from making it
// millions.
func (t *tally) failed(err error) {
	if t.Errors++; t.Error == "" {
		t.Error = err.Error()
	}
	time.Sleep(time.Millisecond)
}

// startWorkers runs them. Each has a context of its own, as requests have: one
// for all would be a point of contention that no program has.
func startWorkers(workers []*worker, l locker, a *arena) (stop func()) {
	var running sync.WaitGroup
	cancels := make([]context.CancelFunc, len(workers))
	for i, w := range workers {
		ctx, cancel := context.WithCancel(context.Background())
		cancels[i] = cancel
		running.Go(func() { w.run(ctx, l, a) })
	}
	return func() {
		for _, c := range cancels {
			c()
		}
		running.Wait()
	}
}

// summarize turns what workers measured in a time into figures.
func summarize(tallies []tally, elapsed time.Duration) figures {
	var cycles, failures, starved int64
	var counts []int64
	var waits []time.Duration
	for _, t := range tallies {
		cycles += t.Cycles
		counts = append(counts, t.Cycles)
		waits = append(waits, t.Waits...)
		if failures == 0 && t.Errors > 0 {
			fmt.Fprintln(os.Stderr, "  an error:", t.Error)
		}
		failures += t.Errors
		if t.Cycles == 0 {
			starved++
		}
	}
	slices.Sort(waits)
	return figures{
		cyclesPerSecond: float64(cycles) / elapsed.Seconds(),
		fairness:        jain(counts),
		neverServed:     float64(starved),
		waitP50:         milliseconds(percentile(waits, 50)),
		waitP99:         milliseconds(percentile(waits, 99)),
		waitMax:         milliseconds(percentile(waits, 100)),
		errorCount:      float64(failures),
	}
}
