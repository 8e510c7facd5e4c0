package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// keysEach is how many keys each goroutine of an uncontended row has.
const keysEach = 16

// uncontended is the row where everybody has keys of their own: what a lock
// costs that nobody disputes.
func uncontended(goroutines int) row {
	return row{
		name:      fmt.Sprintf("uncontended-%d", goroutines),
		title:     fmt.Sprintf("Uncontended, %s", plural(goroutines, "goroutine")),
		libraries: everyLibrary,
		base:      floorName,
		columns:   []figure{cyclesPerSecond, commandsPer, redisCPU, clientCPU, allocsPer, bytesPer, waitP50, waitP99},
		measure: func(ctx context.Context, b *bench, lib library) (figures, error) {
			workers := make([]*worker, goroutines)
			for i := range workers {
				workers[i] = &worker{id: int64(i + 1), section: func() {}}
				for k := range keysEach {
					workers[i].spots = append(workers[i].spots, spot{fmt.Sprintf("order:%d:%d", i, k), new(atomic.Int64)})
				}
			}
			return b.cycles(ctx, lib, workers, new(arena))
		},
	}
}

// cycles has workers of this process take locks for a round.
func (b *bench) cycles(ctx context.Context, lib library, workers []*worker, a *arena) (figures, error) {
	l, err := lib.open(b.server.Addr(), settings{})
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
	w.elapsed = time.Since(start)
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
