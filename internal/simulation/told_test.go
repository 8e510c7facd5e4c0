//go:build go1.25

package simulation

import (
	"testing"
	"testing/synctest"
	"time"
)

// actsAlone returns an actor of a world that has no other. The caller is to call end.
func actsAlone() (w *world, p *process, a *actor, end func()) {
	w = newWorld(1)
	w.server = startServer()
	w.cycles = []*cycle{{}}
	s, end := w.shift()
	p = w.newProcess(0)
	return w, p, &actor{w, p, w.random, s}, end
}

// Whichever hold is left of a lock, its record says when the loss was told.
func TestALossIsRecordedAfterTheOutermostHoldIsUnlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, a, end := actsAlone()
		defer end()

		plan := plan{Key: "hot 0", Lease: time.Second, Fixed: true, Depth: 1}
		r := p.open(plan)
		k, err := p.locker.Lock(p.life, plan.Key, plan.options()...)
		r.returned(k, err)
		inner := a.hold(r, k, plan)
		a.unlock(r, k, false, true, false)
		time.Sleep(2 * plan.Lease)
		a.unlock(r, inner[0], true, false, false)

		v := w.cycles[0].visits[0]
		if over := v.Returned + int64(plan.Lease); v.Outcome != "lost" || v.Told == 0 || v.Told > over {
			t.Errorf("%v; want a loss that was told by %v", v, time.Duration(over))
		}
		p.leave(time.Second)
		time.Sleep(time.Second) // for what is under way
		w.server.Close()
	})
}

// Whoever was told to stop because its caller had gone away hears of no loss after that. When its
// process is killed, what it has lost counts up to then, and what it still has until the lease ends.
func TestALossIsNotHeardOfAfterTheCallerHasGone(t *testing.T) {
	for lives, lost := range map[time.Duration]bool{500 * time.Millisecond: false, 2 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			w, p, a, end := actsAlone()
			defer end()

			plan := plan{Key: "hot 0", Lease: time.Second, Fixed: true, Leave: true, Careless: true, Length: time.Minute}
			p.actors.Go(func() { a.visit(plan) })
			time.Sleep(lives)
			p.kill()
			w.buried.Wait()

			v := w.cycles[0].visits[0]
			if lost && v.End() > v.Returned+int64(plan.Lease) {
				t.Errorf("%v; it was lost before its process was killed", v)
			}
			if !lost && (v.Told != 0 || v.End() < v.Returned+int64(plan.Lease)*98/100) {
				t.Errorf("%v; it was held when its process was killed", v)
			}
			time.Sleep(time.Second) // for what is under way
			w.server.Close()
		})
	}
}
