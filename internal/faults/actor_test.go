//go:build go1.25

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// act visits locks until ctx ends, some for long until leisure ends.
func (w *worker) act(ctx, leisure context.Context, actor int, o order) {
	random := rand.New(rand.NewPCG(w.setup.Seed, uint64(w.setup.Worker<<16+actor)))
	a := &actorState{worker: w, actor: actor, random: random, order: o, ctx: ctx, leisure: leisure}
	a.begin()
	for ctx.Err() == nil {
		if w.countsOnce() && a.chance(requests) {
			a.send(a.anyRequest())
		} else if !a.visit(w.setup.Keys[random.IntN(len(w.setup.Keys))]) {
			a.pause(5*time.Millisecond + rand.N(15*time.Millisecond))
		}
	}
	a.sendAgain()
	a.company.Wait()
}

// actorState is one goroutine of a worker, in one round.
type actorState struct {
	worker       *worker
	actor        int
	random       *rand.Rand
	order        order
	ctx, leisure context.Context
	company      sync.WaitGroup
	requester
}

// accompany has others take locks of their own at the same moment: then calls travel
// together, and what happens to their command happens to all.
func (a *actorState) accompany() {
	l := a.worker.locker
	for i := range a.worker.setup.Company {
		key := fmt.Sprint("companion ", a.worker.setup.Worker, a.actor, i)
		a.company.Go(func() {
			k, err := l.Lock(a.ctx, key, core.Lease(a.order.Lease), core.Wait(200*time.Millisecond))
			if err != nil {
				return
			}
			_ = k.Unlock(context.Background())
		})
	}
}

func (a *actorState) chance(percent int) bool { return a.random.IntN(100) < percent }

// pause waits for d or the end of the round.
func (a *actorState) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.ctx.Done():
	}
}

// visit takes the lock of key, works under it, and unlocks it. It is false when it
// did not get the lock.
func (a *actorState) visit(key string) bool {
	f := a.form(key)
	if f == (form{}) && a.chance(30) {
		return a.visitByDo(key)
	}
	r := a.worker.open(key, f)
	k, err := a.lock(key, f)
	length := a.length()
	r.returned(k, err, length)
	if err != nil {
		return false
	}
	// A careless holder never looks at its context.
	careless := a.chance(30)
	found := a.worker.read(k)
	a.work(k, length/2, careless)
	inner := a.reenter(r, k, f)
	a.work(k, length/2, careless)
	if f == (form{}) && (careless || k.Context().Err() == nil) {
		a.worker.write(found)
	}
	if f == (form{}) && key == readAndWritten && inner == nil && a.worker.setup.Members == 1 && a.chance(40) {
		r.downgrade(k)
		a.work(k, length/2, careless)
	}
	r.leave(k)
	switch {
	case inner == nil:
	case a.chance(50):
		r.unlock(k, false)
		k = inner
	default:
		r.unlock(inner, false)
	}
	r.unlock(k, true)
	return true
}

// visitByDo is visit by way of Do, whose release nobody waits for.
func (a *actorState) visitByDo(key string) (entered bool) {
	ctx, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(a.ctx, cancel)
	defer stop()
	r := a.worker.open(key, form{})
	err := a.worker.locker.Do(ctx, key, func(ctx context.Context) error {
		stop()
		entered = true
		k, _ := core.FromContext(ctx)
		length := a.length()
		r.returned(k, nil, length)
		found := a.worker.read(k)
		a.work(k, length, false)
		if ctx.Err() == nil {
			a.worker.write(found)
		}
		r.leave(k)
		r.update(func(v *visit) { v.Released = now() })
		return nil
	}, core.Lease(a.order.Lease), core.Wait(3*time.Second), core.BackgroundRelease())
	if entered {
		r.doubt = true
		r.unlocked(err, true)
	} else {
		r.returned(nil, err, 0)
	}
	return entered
}

// form is how to ask for a lock: of the keys of a crew one is read and written, and one has
// permits.
func (a *actorState) form(key string) form {
	switch n := a.random.IntN(100); {
	case a.worker.setup.Members > 1: // a quorum knows exclusive locks only
	case key == readAndWritten && n < 60:
		return form{Shared: true}
	case key == permitted && n < 90:
		return form{Permits: 2 + n%2, Weight: 1 + n/2%2}
	}
	return form{}
}

func optionsOf(f form) []core.Option {
	switch {
	case f.Shared:
		return []core.Option{core.Shared()}
	case f.Permits > 0:
		return []core.Option{core.Permits(f.Permits), core.Weight(f.Taken())}
	}
	return nil
}

// lock is one of the ways to ask for a lock.
func (a *actorState) lock(key string, f form) (*core.Lock, error) {
	ctx, cancel := context.WithCancel(context.Background())
	// Waiting ends with the round. The context of a lock that is held must not, for
	// it is to tell of losses only.
	stop := context.AfterFunc(a.ctx, cancel)
	defer stop()
	if a.chance(50) {
		a.accompany()
	}
	options := append(optionsOf(f), core.Lease(a.order.Lease))
	switch n := a.random.IntN(100); {
	case n < 20:
		return a.worker.locker.TryLock(ctx, key, options...)
	case n < 40:
		return a.worker.locker.Lock(ctx, key, append(options, core.Wait(200*time.Millisecond))...)
	case n < 50:
		impatient := time.AfterFunc(rand.N(30*time.Millisecond), cancel)
		defer impatient.Stop()
	}
	return a.worker.locker.Lock(ctx, key, append(options, core.Wait(3*time.Second))...)
}

// reenter takes the lock once more, now and then. What it has together with others it cannot
// have alone.
func (a *actorState) reenter(r *record, k *core.Lock, f form) *core.Lock {
	if !a.chance(30) {
		return nil
	}
	if f != (form{}) && a.chance(20) {
		_, err := a.worker.locker.Lock(k.Context(), k.Key())
		r.upgraded(k, err)
	}
	inner, err := a.worker.locker.Lock(k.Context(), k.Key(), optionsOf(f)...)
	r.reentered(k, inner, err)
	return inner
}

// work holds the lock for a while.
func (a *actorState) work(k *core.Lock, d time.Duration, careless bool) {
	over := k.Context().Done()
	if careless {
		over = nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
	case <-a.leisure.Done():
	}
}

// length is how long to hold a lock: mostly shortly, now and then for longer than
// its lease.
func (a *actorState) length() time.Duration {
	if a.chance(a.order.Long) && a.leisure.Err() == nil {
		return lease*4/10 + time.Duration(a.random.Int64N(int64(longestHold-lease*4/10)))
	}
	return time.Duration(a.random.Int64N(int64(50 * time.Millisecond)))
}
