package core

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// slowInner is how long an inner call waits before the log has a warning.
const slowInner = 5 * time.Second

// inner is a call that wants a lock while its context holds others. In a wait-for cycle each
// call is such a call, so the others need not be known.
type inner struct {
	schedule.Entry
	call  *lockCall
	holds []*Lock // innermost first
}

// inner returns the call as one of a context that holds locks, nil if it holds none. What LockAll
// has taken so far it gives back by itself.
func (c *lockCall) inner() *inner {
	var holds []*Lock
	for k := innermost(c.ctx); k != nil; k = k.outer {
		if (c.group == nil || k.group != c.group) && k.isInTheWay() {
			holds = append(holds, k)
		}
	}
	if holds == nil {
		return nil
	}
	return &inner{call: c, holds: holds}
}

// isInTheWay says that the lock is held, and that nothing but its Unlock, or a loss, ends that.
func (k *Lock) isInTheWay() bool {
	s := k.lease
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life.State() == life.Held && k.state == life.In
}

// isOutOfOrder says that the lock sorts before one that the context holds, where LockAll has
// taken, or takes, one of them: whoever waits for it might close a cycle with others who keep
// to that order.
func (i *inner) isOutOfOrder() bool {
	return slices.ContainsFunc(i.holds, func(k *Lock) bool {
		return (k.group != nil || i.call.group != nil) && k.lease.name.Lock() > i.call.name.Lock()
	})
}

// begin begins a wait. It fails when the wait would have no end. Other processes may be part of a
// cycle, so the wait is no longer than the lease by default.
func (i *inner) begin() error {
	c := i.call
	if c.group == nil {
		c.boundWait()
	}
	if circle := waitingInside.add(i); circle != nil {
		err := &BusyError{
			Key: c.name.Key(), RetryAfter: time.Second, HeldKeys: i.keys(), Circle: circle,
			refused: circular, permits: c.settings.Form.NeedsPermit(),
		}
		c.engine.report.problem(c.ctx, "calls wait for one another in a circle, one of them is refused", "key", c.name.Key(), "error", err)
		return err
	}
	c.engine.scheduler.Set(i, schedule.Now().Add(slowInner))
	return nil
}

func (i *inner) end() {
	i.call.engine.scheduler.Remove(i)
	waitingInside.remove(i)
}

// Due warns of a wait that is long, for a cycle may go through other processes.
func (i *inner) Due(schedule.Time) {
	c := i.call
	c.engine.report.warn(c.ctx, "a call waits for a lock while its context holds others",
		"key", c.name.Key(), "held", i.keys(), "for", slowInner)
}

// boundWait has a call that has not said how long it waits do so for a lease.
func (c *lockCall) boundWait() {
	if c.settings.Wait == nil {
		s := *c.settings
		s.Wait = &s.Lease
		c.settings = &s
	}
}

func (i *inner) noteHeld(err error) error {
	if busy := (*BusyError)(nil); errors.As(err, &busy) {
		busy.HeldKeys = i.keys()
	}
	return err
}

// keys are those that the context holds, innermost first.
func (i *inner) keys() []string {
	var keys []string
	for _, k := range i.holds {
		if !slices.Contains(keys, k.Key()) {
			keys = append(keys, k.Key())
		}
	}
	return keys
}

// waitsFor says that the call cannot have its lock before the other one is done, which holds it.
func (i *inner) waitsFor(other *inner) bool {
	c := i.call
	return slices.ContainsFunc(other.holds, func(k *Lock) bool {
		s := k.lease
		return s.name.Lock() == c.name.Lock() && s.owner != c.chosen && c.hasToWaitFor(s.Form) &&
			(s.engine == c.engine || s.engine.store.SharesRedis(c.engine.store)) && k.isInTheWay()
	})
}

// hasToWaitFor says that the call has to wait for a holder in a form. Where the two go together, the first call in the queue may have
// to, without end: nobody overtakes that one.
func (c *lockCall) hasToWaitFor(holder store.Form) bool {
	first, queued := c.engine.queues.WaitFor(c.name.Lock())
	isBehind := queued && first.Request.waitsForEver() && first.Request.form.WaitsFor(holder)
	return isBehind || c.form.WaitsFor(holder)
}

// waitsForEver says that nothing but the lock ends the wait in a day, as far as is known.
func (w *want) waitsForEver() bool {
	until, bounded := w.ctx.Deadline()
	return (!bounded || time.Until(until) > longestLease) && (w.settings.Wait == nil || *w.settings.Wait > longestLease)
}

// waitForGraph has the inner calls of all Lockers of the process that wait, by the names in Redis of the
// locks that their contexts hold.
type waitForGraph struct {
	mu     sync.Mutex
	byHeld map[string][]*inner
}

var waitingInside = waitForGraph{byHeld: map[string][]*inner{}}

// add adds a call that is about to wait, unless that closes a cycle: then it
// returns the keys that the calls of the cycle wait for, the new one first; each of the
// others holds what the one before it waits for.
func (g *waitForGraph) add(i *inner) (circle []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if circle = g.circle(i); circle != nil {
		return circle
	}
	for _, k := range i.holds {
		lock := k.lease.name.Lock()
		g.byHeld[lock] = append(g.byHeld[lock], i)
	}
	return nil
}

// circle is the shortest cycle that a new call closes. mu is held.
func (g *waitForGraph) circle(from *inner) []string {
	behind := map[*inner]*inner{} // who was found to wait for it
	for next := []*inner{from}; len(next) > 0; next = next[1:] {
		i := next[0]
		if i.waitsFor(from) {
			keys := []string{from.call.name.Key()}
			for ; i != from; i = behind[i] {
				keys = slices.Insert(keys, 1, i.call.name.Key())
			}
			return keys
		}
		for _, holder := range g.byHeld[i.call.name.Lock()] {
			if behind[holder] == nil && i.waitsFor(holder) {
				behind[holder] = i
				next = append(next, holder)
			}
		}
	}
	return nil
}

func (g *waitForGraph) remove(i *inner) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range i.holds {
		lock := k.lease.name.Lock()
		g.byHeld[lock] = slices.DeleteFunc(g.byHeld[lock], func(other *inner) bool { return other == i })
		if len(g.byHeld[lock]) == 0 {
			delete(g.byHeld, lock)
		}
	}
}
