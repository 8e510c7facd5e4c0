package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// heldUntilKilled is the row of locks that one process holds for a while, until it dies: what they
// cost it and Redis, and another process that takes a lock now and then, while they are held
// and while all of their leases end.
func heldUntilKilled(name string, locks int, lease, hold time.Duration) row {
	return row{
		name:      name,
		title:     fmt.Sprintf("%d locks held for %v s, lease %v; then their process is killed", locks, hold.Seconds(), lease),
		libraries: []string{latchkeyName},
		columns: []figure{takenPerSecond, clientCPUMinute, redisCPUMinute, heapPerLock, redisPerLock, locksLost,
			otherP99, otherMax, otherMaxAtEnd, goneAfter},
		maxRounds: 1,
		minutes:   hold >= time.Minute,
		measure: func(ctx context.Context, b *bench, lib library) (figures, error) {
			other, err := startChildren([]order{{Job: "watch", Library: lib.name, Addr: b.server.Addr()}})
			if err != nil {
				return nil, err
			}
			defer other.unmap()
			o := order{Job: "hold", Library: lib.name, Addr: b.server.Addr(), Locks: locks, Lease: lease, Measure: hold, Dies: true}
			f, err := b.killed(ctx, o, other.phase.Store)
			cycles, ending := finish[map[int32]tally](other)
			if err := firstError(err, ending); err != nil {
				return nil, err
			}
			held, atEnd := cycles[0][measuring], cycles[0][leasesEnd]
			f[otherP99], f[otherMax] = summarize([]tally{held}, hold)[waitP99], summarize([]tally{held}, hold)[waitMax]
			f[otherMaxAtEnd] = summarize([]tally{atEnd}, lease)[waitMax]
			f[errorCount] += float64(held.Errors + atEnd.Errors)
			return f, nil
		},
	}
}

// killed has a process hold locks and die with them.
func (b *bench) killed(ctx context.Context, o order, tell func(phase int32)) (figures, error) {
	f, err := b.held(ctx, o, tell)
	if err != nil {
		return nil, err
	}
	died := time.Now()
	tell(leasesEnd)
	defer tell(over)
	ctx, cancel := context.WithTimeout(ctx, o.Lease+10*patience)
	defer cancel()
	until(ctx, 20*time.Millisecond, func() bool {
		var now snapshot
		now, err = b.redis.snapshot(ctx)
		return err != nil || now.leases <= leasesOfAnother
	})
	f[goneAfter] = time.Since(died).Seconds()
	return f, errors.Join(err, ctx.Err())
}

// leasesOfAnother is the most keys with an end that the other process has at a time. Fencing
// clocks have none.
const leasesOfAnother = 4

// watchEvery is how often the other process takes its lock.
const watchEvery = 10 * time.Millisecond

// watch is what the other process does, until it ends: it takes a lock of its own now and then,
// and returns how long that took, by phase.
func watch(o order, lib library, a *arena, ready func(), end <-chan struct{}) (any, error) {
	l, err := lib.open(o.Addr, settings{})
	if err != nil {
		return nil, err
	}
	cycles := map[int32]*tally{warmingUp: {}, measuring: {}, leasesEnd: {}, over: {}}
	ready()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-end:
			return cycles, l.close()
		case <-tick.C:
		}
		t, start := cycles[a.phase.Load()], time.Now()
		h, err := l.lock(context.Background(), "payment:7")
		if err == nil {
			err = h.unlock()
		}
		if err != nil {
			t.failed(err)
		}
		// A long one stands for those that would have begun meanwhile.
		for took := time.Since(start); took > 0; took -= watchEvery {
			t.Waits = append(t.Waits, took)
		}
	}
}
