package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// handoff is the row of two processes that hold a lock in turn: how long it takes from the
// call of release in one, and from its return, until the other has the lock.
func handoff() row {
	return row{
		name:      "handoff",
		title:     "Hand-off between two processes, from release called to acquired",
		libraries: everyLibrary,
		columns:   []figure{handoffP50, handoffP99, returnP50, handoffCount},
		measure: func(ctx context.Context, b *bench, lib library) (figures, error) {
			c, err := startChildren([]order{
				{Job: "hand off", Library: lib.name, Addr: b.server.Addr(), Number: 0},
				{Job: "hand off", Library: lib.name, Addr: b.server.Addr(), Number: 1},
			})
			if err != nil {
				return nil, err
			}
			defer c.unmap()
			sleep(ctx, b.warmUp())
			c.phase.Store(measuring)
			// A holder waits a while before it releases, so this row needs longer
			// for a 99th percentile that means something.
			sleep(ctx, 2*b.roundTime)
			both, err := finish[handOffs](c)
			if err != nil {
				return nil, err
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			var all, returned []time.Duration
			for _, h := range both {
				all, returned = append(all, h.Released...), append(returned, h.Returned...)
			}
			if len(all) == 0 {
				return nil, errNoHandOff
			}
			slices.Sort(all)
			slices.Sort(returned)
			return figures{
				handoffP50:     milliseconds(percentile(all, 50)),
				handoffP99:     milliseconds(percentile(all, 99)),
				returnP50:      milliseconds(percentile(returned, 50)),
				handoffCount:   float64(len(all)),
				violationCount: float64(c.violations.Load()),
			}, nil
		},
	}
}

var errNoHandOff = errors.New("no hand-off happened")

// handOffs are those to one process, since release was called and since it returned: the
// latter can be before that.
type handOffs struct{ Released, Returned []time.Duration }

// handOff is what each of the two does: begin to wait when the other has the
// lock, and release when the other waits. They find that out through the shared
// memory, not through Redis.
func handOff(o order, lib library, a *arena, ready func(), end <-chan struct{}) (any, error) {
	l, err := lib.open(o.Addr, settings{})
	if err != nil {
		return nil, err
	}
	me, other := int64(o.Number+1), int64(2-o.Number)
	at := wants{}.spots(a, 0)[0]
	if me == 1 {
		a.holder.Store(other) // so that the first one begins
	}
	ready()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-end
		cancel()
	}()

	var taken handOffs
	for until(ctx, glance, func() bool { return a.holder.Load() == other }) {
		a.waiting.Store(me)
		h, err := at.lock(ctx, l)
		now := monotonic()
		if ctx.Err() != nil {
			released := a.releasedAt.Load()
			missing := time.Duration(now - released)
			if err != nil && released != 0 && a.inUse[0].Load() == 0 && missing > stall {
				// A wake-up that was lost. Its wait would have been longer still.
				taken.Released = append(taken.Released, missing)
			}
			break
		}
		if err != nil {
			return nil, err
		}
		released := a.releasedAt.Load()
		counts := released != 0 && a.phase.Load() == measuring
		if counts {
			taken.Released = append(taken.Released, time.Duration(now-released))
		}
		a.enter(at)
		a.holder.Store(me)
		until(ctx, glance, func() bool { return a.waiting.Load() == other })
		if counts { // by now the other has returned
			taken.Returned = append(taken.Returned, time.Duration(now-a.returnedAt.Load()))
		}
		// The other is about to call lock. Give it time to begin its wait, and
		// release at any point of a polling interval alike.
		time.Sleep(2*time.Millisecond + rand.N(pollEvery))
		a.leave(at)
		a.releasedAt.Store(monotonic())
		if err := h.unlock(); err != nil {
			return nil, fmt.Errorf("unlock: %w", err)
		}
		a.returnedAt.Store(monotonic())
	}
	return taken, l.close()
}

// stall is how long a hand-off must be overdue at the end to count: a shorter one
// may be the end itself.
const stall = 50 * time.Millisecond

// glance is how often the two look at the shared memory. They must not spin: the
// other one needs the processor.
const glance = 200 * time.Microsecond

// until looks now and then whether a condition is true, and returns false when
// ctx ends first.
func until(ctx context.Context, every time.Duration, condition func() bool) bool {
	for !condition() {
		if ctx.Err() != nil {
			return false
		}
		time.Sleep(every)
	}
	return ctx.Err() == nil
}
