//go:build go1.25

package simulation

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// enterBeside has another goroutine enter a lock while its last handle is unlocked. That is a
// re-entry, or a call that comes after the Unlock: nothing is lost. It returns what waits for that
// goroutine.
func (a *actor) enterBeside(last *core.Lock, p plan) (wait func()) {
	w, calm := a.world, a.world.isCalm()
	ctx := last.Context()
	if a.random.IntN(2) == 0 {
		ctx = context.WithoutCancel(ctx)
	}
	options := append(p.form(), core.Wait(between(a.random, time.Millisecond, w.lease/20)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		k, err := a.process.locker.Lock(ctx, last.Key(), options...)
		expected := []error{core.ErrNotAcquired}
		what := "Lock"
		if err == nil {
			what, expected = "the Unlock of a lock that was taken", nil
			err = k.Unlock(context.Background())
			w.count("entered beside Unlock")
		}
		if !calm || !w.isCalm() {
			expected = append(expected, core.ErrNotAcquired, core.ErrUnavailable, core.ErrLost, core.ErrMaxHold, core.ErrClosed)
		}
		if err != nil && !slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
			w.complain("%s: %s beside an Unlock: %v", last.Key(), what, err)
		}
	}()
	time.Sleep(between(a.random, 0, 3*w.latency))
	return func() { <-done }
}

// giveUp holds a lock that only this process uses until all who wait for it have given up, and
// unlocks it. Nobody waits for it any more: whoever tries to take it has it.
func (a *actor) giveUp() {
	p, w := a.process, a.world
	if !p.givesUp.CompareAndSwap(false, true) {
		return
	}
	defer p.givesUp.Store(false)
	key, calm := own[p.place], w.isCalm()
	k, err := p.locker.Lock(p.life, key, core.Wait(w.lease))
	if err != nil {
		return
	}
	var waiting sync.WaitGroup
	for range 1 + a.random.IntN(2) {
		patience, longest := between(a.random, time.Millisecond, 50*time.Millisecond+10*w.latency), w.lease
		if a.random.IntN(2) == 0 {
			patience, longest = longest, patience
		}
		waiting.Go(func() {
			ctx, cancel := context.WithTimeout(p.life, patience)
			defer cancel()
			if got, err := p.locker.Lock(ctx, key, core.Wait(longest)); err == nil {
				if k.Context().Err() == nil && calm && w.isCalm() { // a clock that is set forwards ends a lock too early
					w.complain("%s: taken by a second one", key)
				}
				_ = got.Unlock(context.Background())
			}
		})
	}
	waiting.Wait()
	time.Sleep(between(a.random, 0, 2*w.latency))
	unlocked := k.Unlock(context.Background())
	next, err := p.locker.TryLock(p.life, key)
	if calm && w.isCalm() && (unlocked != nil || err != nil) {
		w.complain("%s, for which nobody waits any more: Unlock: %v, TryLock: %v", key, unlocked, err)
	}
	if err == nil {
		_ = next.Unlock(context.Background())
	}
	w.count("given up")
}

// losses complains of locks that are lost while nothing is wrong.
type losses struct{ world *world }

func (o losses) Observe(_ context.Context, e core.Event) context.Context {
	if e.Kind == core.EventLost && o.world.isCalm() {
		o.world.complain("%s: lost without a reason, as Observers hear (%s, %v)", e.Key, e.Reason, e.Err)
	}
	return nil
}
