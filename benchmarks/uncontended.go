package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// keysEach is how many keys each goroutine of an uncontended row has.
const keysEach = 16

// uncontended is the row where everybody has keys of their own: what a lock
// costs that nobody disputes.
func uncontended(goroutines int) row {
	return row{
		name:      fmt.Sprintf("uncontended-%d", goroutines),
		title:     fmt.Sprintf("Uncontended, %s", plural(goroutines, "goroutine")),
		libraries: slices.Insert(slices.Clone(everyLibrary), 2, plainName),
		base:      floorName,
		columns:   []figure{cyclesPerSecond, commandsPer, redisCPU, clientCPU, allocsPer, bytesPer, waitP50, waitP99},
		measure: func(ctx context.Context, b *bench, lib library) (figures, error) {
			return b.cycles(ctx, lib, b.server.Addr(), keysOfTheirOwn(goroutines, 1), new(arena))
		},
	}
}

// obedient is uncontended with clients that all obey deadlines, as latchkey's does.
func obedient(goroutines int) row {
	r := uncontended(goroutines)
	r.name = fmt.Sprintf("context-timeout-%d", goroutines)
	r.title += ", ContextTimeoutEnabled"
	r.libraries = []string{floorName, latchkeyName, redislockName, redsyncName}
	measure := r.measure
	r.measure = func(ctx context.Context, b *bench, lib library) (figures, error) {
		open := lib.open
		lib.open = func(addr string, s settings) (locker, error) {
			s.contextTimeout = true
			return open(addr, s)
		}
		return measure(ctx, b, lib)
	}
	return r
}

// wire is how long a request, or a reply, takes in the rows of a Redis that is not on this
// machine.
const wire = 500 * time.Microsecond

// distant is uncontended with a network between: what users see.
func distant(goroutines int) row {
	r := uncontended(goroutines)
	r.name = fmt.Sprintf("distant-%d", goroutines)
	r.title += fmt.Sprintf(", Redis %v away", wire)
	r.libraries = everyLibrary
	r.columns = []figure{cyclesPerSecond, commandsPer, redisCPU, waitP50, waitP99}
	r.measure = func(ctx context.Context, b *bench, lib library) (figures, error) {
		proxy, err := redistest.OpenProxy(b.server.Addr())
		if err != nil {
			return nil, err
		}
		defer proxy.Close()
		proxy.Latency(wire)
		return b.cycles(ctx, lib, proxy.Addr(), keysOfTheirOwn(goroutines, 1), new(arena))
	}
	return r
}

// keysOfTheirOwn are workers that do nothing under locks nobody disputes, of so many
// keys at a time.
func keysOfTheirOwn(goroutines, atOnce int) []*worker {
	workers := make([]*worker, goroutines)
	for i := range workers {
		workers[i] = &worker{section: func() {}}
		for k := range keysEach {
			var s spot
			for n := range atOnce {
				s.keys = append(s.keys, fmt.Sprintf("order:%d:%d", i, k*atOnce+n))
				s.inUse = append(s.inUse, new(atomic.Int64))
			}
			workers[i].spots = append(workers[i].spots, s)
		}
	}
	return workers
}

// cycles has workers of this process take locks for a round.
func (b *bench) cycles(ctx context.Context, lib library, addr string, workers []*worker, a *arena) (figures, error) {
	l, err := lib.open(addr, settings{})
	if err != nil {
		return nil, err
	}
	stop := startWorkers(workers, l, a)
	sleep(ctx, b.warmUp())
	var before, after usage
	c, err := b.window(ctx, a, func() { before, after = after, usageNow() })
	stop()
	if err := firstError(err, l.close()); err != nil {
		return nil, err
	}
	var tallies []tally
	for _, w := range workers {
		tallies = append(tallies, w.tally)
	}
	f := summarize(tallies, c.elapsed)
	c.costs(lib, f)
	cycles := f[cyclesPerSecond] * c.elapsed.Seconds()
	f[clientCPU] = float64((after.cpu - before.cpu).Microseconds()) / cycles
	f[allocsPer] = float64(after.mallocs-before.mallocs) / cycles
	f[bytesPer] = float64(after.bytes-before.bytes) / cycles
	f[violationCount] = float64(a.violations.Load())
	return f, nil
}

// window is the measured time of a round, as Redis and the clock saw it.
type window struct {
	before, after snapshot
	elapsed       time.Duration
	ended         int64 // by monotonic
}

// window measures for the time of a round; note is called at its begin and at its
// end. At both Redis is asked first and the phase changes last, so that what is
// under way meanwhile counts at one end what it does not at the other.
func (b *bench) window(ctx context.Context, a *arena, note func()) (w window, err error) {
	defer a.phase.Store(over)
	if w.before, err = b.redis.snapshot(ctx); err != nil {
		return w, err
	}
	note()
	start := time.Now()
	a.phase.Store(measuring)
	sleep(ctx, b.roundTime)
	if w.after, err = b.redis.snapshot(ctx); err != nil {
		return w, err
	}
	note()
	a.phase.Store(over)
	w.elapsed, w.ended = time.Since(start), monotonic()
	return w, ctx.Err()
}

// costs adds what Redis had to do for each cycle.
func (w window) costs(lib library, f figures) {
	cycles := f[cyclesPerSecond] * w.elapsed.Seconds()
	f[commandsPer] = float64(lib.traffic(w.before, w.after)) / cycles
	f[redisCPU] = (w.after.cpu - w.before.cpu) * 1e6 / cycles
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
