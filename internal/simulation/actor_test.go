//go:build go1.25

package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/checker"
)

// actor is a goroutine of a process that visits one lock after the other.
type actor struct {
	world   *world
	process *process
	random  *rand.Rand
	shift   *shift
}

// shift is a time of work. When it ends nobody waits any more, and who holds a lock
// unlocks it soon.
type shift struct {
	ctx  context.Context
	calm func() bool
}

// work has the actors of a process visit locks until the shift ends.
func (p *process) work(s *shift) {
	for range p.world.actors {
		a := &actor{p.world, p, rand.New(rand.NewPCG(p.random.Uint64(), 0)), s}
		p.actors.Go(func() {
			for s.ctx.Err() == nil && p.life.Err() == nil {
				most := p.world.lease / 10
				if s.calm() {
					most = max(most, 100*time.Millisecond)
				}
				a.process.sleep(s.ctx, between(a.random, 0, most))
				if a.random.IntN(10) == 0 {
					a.giveUp()
				} else {
					a.visit(p.world.plan(a.random, s.calm()))
				}
			}
		})
	}
}

var (
	errFailed  = errors.New("the work failed")
	errGivenUp = errors.New("its caller has gone away")
)

// visit tries to take a lock, works under it and unlocks it.
func (a *actor) visit(p plan) {
	r := a.process.open(p)
	ctx, cancel := context.WithCancelCause(a.process.life)
	defer cancel(nil)
	giveUp := func() {
		at := now()
		r.update(func(v *visit) {
			if v.Ended == 0 {
				v.Ended = at
			}
		})
		cancel(errGivenUp)
	}
	// Waiting ends with the shift. The context of a lock that is held must not.
	stop := context.AfterFunc(a.shift.ctx, giveUp)
	defer stop()
	if p.Cancel > 0 {
		impatient := time.AfterFunc(p.Cancel, giveUp)
		defer impatient.Stop()
		held := stop
		stop = func() bool { impatient.Stop(); return held() }
	}
	if p.Do {
		a.do(ctx, r, p, func() { stop() })
		return
	}
	k, err := a.process.locker.Lock(ctx, p.Key, p.options()...)
	stop()
	r.returned(k, err)
	if err != nil {
		return
	}
	if p.Leave {
		giveUp() // as when the client of a request goes away
	}
	inner := a.hold(r, k, p)
	if p.Handover || a.process.leaves.Load() && p.alone() && !p.Share && p.Owner == "" && p.KeepFor == 0 {
		if a.handOver(r, k, inner) {
			return
		}
		inner = nil
		a.work(k, p.Length/2, p)
	}
	handles := append(inner, k)
	if p.Owner == "" {
		a.random.Shuffle(len(handles), func(i, j int) { handles[i], handles[j] = handles[j], handles[i] })
	}
	for i, h := range handles {
		last := i == len(handles)-1
		abort := p.Abort
		if h != k {
			abort = a.random.IntN(3) == 0 // of nested holds the outermost counts
		}
		if last && p.Beside {
			defer a.enterBeside(h, p)()
		}
		a.unlock(r, h, last, h == k, abort)
	}
}

// unlock ends one hold.
func (a *actor) unlock(r *record, h *core.Lock, last, outermost, abort bool) {
	r.releases(h, last)
	began := time.Now()
	var err error
	if abort {
		err = h.Abort(context.Background())
	} else {
		err = h.Unlock(context.Background())
	}
	r.released(err, last, outermost && !abort && err == nil, time.Since(began))
}

// do visits a lock by way of Do.
func (a *actor) do(ctx context.Context, r *record, p plan, stop func()) {
	entered := false
	err := a.process.locker.Do(ctx, p.Key, func(ctx context.Context) error {
		stop()
		entered = true
		k, ok := core.FromContext(ctx)
		if !ok {
			panic("Do without a lock")
		}
		r.returned(k, nil)
		for _, h := range a.hold(r, k, p) {
			a.unlock(r, h, false, false, a.random.IntN(3) == 0)
		}
		r.releases(k, true)
		if p.Abort {
			return errFailed
		}
		return nil
	}, p.options()...)
	switch {
	case !entered:
		r.returned(nil, err)
	case errors.Is(err, errFailed), errors.Is(err, core.ErrMaxHold):
		r.settled(nil)
	default:
		r.settled(err)
	}
}

// settled enters the outcome of Do. Redis may not have confirmed the release.
func (r *record) settled(err error) {
	r.mu.Lock()
	r.doubt = true
	r.mu.Unlock()
	r.released(err, true, false, 0)
}

// hold works under the lock, re-enters it and writes to the store. It returns the
// handles of the re-entries.
func (a *actor) hold(r *record, k *core.Lock, p plan) (inner []*core.Lock) {
	store := a.world.store
	access := checker.Access{Key: p.Key, Owner: r.owner(), Token: k.Token()}
	if p.Owner == "" {
		access = store.Serve(access)
	}
	a.work(k, p.Length/2, p)
	outer := k
	for range p.Depth {
		l, err := a.reenter(outer, p.form()...)
		r.reentered(k, l, err)
		if err != nil {
			break
		}
		inner = append(inner, l)
		outer = l
	}
	if p.Upgrade {
		_, err := a.reenter(k)
		r.upgraded(k, err)
	}
	if p.Refresh {
		_ = k.Refresh(context.Background())
	}
	a.work(k, p.Length/2, p)
	if p.Owner == "" && p.alone() && (p.Careless || k.Context().Err() == nil) {
		access.Write, access.Fenced, access.Unfenced = true, access.Fenced+1, access.Unfenced+1
		store.Serve(access)
	}
	if p.Share {
		asked := now()
		r.update(func(v *visit) { v.Downgraded = asked })
		r.downgraded(k, k.Downgrade(context.Background()))
		a.work(k, p.Length/2, p)
	}
	return inner
}

// reenter takes a lock once more. The call ends with the context of the outer hold, the
// hold that it gets does not: the outer one may be unlocked first, and the holder must hear
// of a loss after that, too.
func (a *actor) reenter(outer *core.Lock, opts ...core.Option) (*core.Lock, error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(outer.Context()))
	stop := context.AfterFunc(outer.Context(), func() { cancel(context.Cause(outer.Context())) })
	defer stop()
	return a.process.locker.Lock(ctx, outer.Key(), opts...)
}

// work holds the lock for a while.
func (a *actor) work(k *core.Lock, d time.Duration, p plan) {
	if a.shift.ctx.Err() != nil {
		d = min(d, time.Millisecond)
	}
	ctx := k.Context()
	if p.Careless {
		ctx = context.Background()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-a.shift.ctx.Done():
	case <-a.process.life.Done():
	}
	a.process.gate()
}
