package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// handOver hands the lock over to a job, while the inner handles are unlocked, and ends the job.
// It is false when the lock is still the actor's, because the job was not started.
func (a *actor) handOver(r *record, k *core.Lock, inner []*core.Lock) bool {
	p, l := a.process, a.world.lease
	r.mu.Lock()
	r.doubt = true // who has the lock is not asked again
	r.mu.Unlock()
	unlocked := make(chan struct{})
	go func() {
		defer close(unlocked)
		for _, h := range inner {
			a.unlock(r, h, false, false, false)
		}
	}()
	ticket, ttl := r.visit.ID, between(a.random, l/20, l/4)
	takes, fails := between(a.random, 0, l/4), a.random.IntN(3) > 0
	if p.leaves.Load() { // Close ends before the job does
		takes, ttl, fails = 2*l, 3*l, true
	}
	handOver := func() error {
		return adapter.Handover(context.Background(), k, ticket, ttl, func() error {
			p.sleep(context.Background(), takes)
			if fails {
				return errFailed
			}
			return nil
		})
	}
	var err error
	if len(inner) == 0 {
		err = handOver()
	} else {
		for range 200 { // it is refused while one is open, at once
			if err = handOver(); !errors.Is(err, core.ErrNotHeld) {
				break
			}
		}
	}
	<-unlocked
	if len(inner) > 0 && errors.Is(err, core.ErrNotHeld) {
		err = handOver()
	}
	if err != nil {
		if p.closed.Load() && k.Refresh(context.Background()) == nil {
			a.world.complain("%s: a handover that failed with %v has brought a lock back after Close", k.Key(), err)
		}
		return false
	}
	r.releases(k, true)
	r.released(nil, true, false, 0)
	a.world.count("handed over")
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if job, err := p.locker.Resume(ctx, k.Key(), ticket); err == nil {
		_ = job.Unlock(context.Background())
	}
	return true
}
