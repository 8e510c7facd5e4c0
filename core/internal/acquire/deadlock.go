package acquire

import (
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// slowInner is how long an inner call waits before the log has a warning.
const slowInner = 5 * time.Second

// nestedWait returns the call as one of a context that holds locks, nil if it holds none. What LockAll
// has taken so far it gives back by itself.
func (c *request) nestedWait() *nestedWait {
	var holds []*lease.Handle
	lease.Find(c.ctx, func(h *lease.Handle) bool {
		if (c.group == nil || h.Group() != c.group) && h.IsInTheWay() {
			holds = append(holds, h)
		}
		return false
	})
	if holds == nil {
		return nil
	}
	return &nestedWait{call: c, holds: holds}
}

// isOutOfOrder says that the lock sorts before one that the context holds, where LockAll has
// taken, or takes, one of them: whoever waits for it might close a cycle with others who keep
// to that order.
func (i *nestedWait) isOutOfOrder() bool {
	return slices.ContainsFunc(i.holds, func(h *lease.Handle) bool {
		return (h.Group() != nil || i.call.group != nil) && h.Acquired().Name.Lock() > i.call.name.Lock()
	})
}

// begin begins a wait. It fails when the wait would have no end. Other processes may be part of a
// cycle, so the wait is no longer than the lease by default.
func (i *nestedWait) begin() error {
	c := i.call
	if c.group == nil {
		c.boundWait()
	}
	if circle := waitingInside.add(i); circle != nil {
		err := c.acquirer.errors.Busy(Refusal{
			Key: c.name.Key(), Why: Circular, HeldKeys: i.keys(), Circle: circle, WantsPermit: c.settings.Form.NeedsPermit(),
		})
		c.acquirer.Problem(c.ctx, "calls wait for one another in a circle, one of them is refused", "key", c.name.Key(), "error", err)
		return err
	}
	c.acquirer.Scheduler.Set(i, schedule.Now().Add(slowInner))
	return nil
}

func (i *nestedWait) end() {
	i.call.acquirer.Scheduler.Remove(i)
	waitingInside.remove(i)
}

// Due warns of a wait that is long, for a cycle may go through other processes.
func (i *nestedWait) Due(schedule.Time) {
	c := i.call
	c.acquirer.Warn(c.ctx, "a call waits for a lock while its context holds others",
		"key", c.name.Key(), "held", i.keys(), "for", slowInner)
}

// boundWait has a call that has not said how long it waits do so for a lease.
func (c *request) boundWait() {
	if c.settings.Wait == nil {
		s := *c.settings
		s.Wait = &s.Lease
		c.settings = &s
	}
}

// waitsFor says that the call cannot have its lock before the other one is done, which holds it.
func (i *nestedWait) waitsFor(other *nestedWait) bool {
	c := i.call
	return slices.ContainsFunc(other.holds, func(h *lease.Handle) bool {
		return h.Acquired().Name.Lock() == c.name.Lock() && h.Acquired().Owner != c.chosen && c.hasToWaitFor(h.Form()) &&
			(h.Backend() == &c.acquirer.Backend || h.Backend().Store.SharesRedis(c.acquirer.Store)) && h.IsInTheWay()
	})
}

// hasToWaitFor says that the call has to wait for a holder in a form. Where the two go together, the first call in the queue may have
// to, without end: nobody overtakes that one.
func (c *request) hasToWaitFor(holder store.Form) bool {
	first, queued := c.acquirer.queues.WaitFor(c.name.Lock())
	isBehind := queued && first.Request.waitsForEver() && first.Request.form.WaitsFor(holder)
	return isBehind || c.form.WaitsFor(holder)
}

// waitForGraph has the inner calls of all Lockers of the process that wait, by the names in Redis of the
// locks that their contexts hold.
type waitForGraph struct {
	mu     sync.Mutex
	byHeld map[string][]*nestedWait
}

var waitingInside = waitForGraph{byHeld: map[string][]*nestedWait{}}

// add adds a call that is about to wait, unless that closes a cycle: then it
// returns the keys that the calls of the cycle wait for, the new one first; each of the
// others holds what the one before it waits for.
func (g *waitForGraph) add(i *nestedWait) (circle []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if circle = g.circle(i); circle != nil {
		return circle
	}
	for _, h := range i.holds {
		lock := h.Acquired().Name.Lock()
		g.byHeld[lock] = append(g.byHeld[lock], i)
	}
	return nil
}

// circle is the shortest cycle that a new call closes. mu is held.
func (g *waitForGraph) circle(from *nestedWait) []string {
	behind := map[*nestedWait]*nestedWait{} // who was found to wait for it
	for next := []*nestedWait{from}; len(next) > 0; next = next[1:] {
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

func (g *waitForGraph) remove(i *nestedWait) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range i.holds {
		lock := h.Acquired().Name.Lock()
		g.byHeld[lock] = slices.DeleteFunc(g.byHeld[lock], func(other *nestedWait) bool { return other == i })
		if len(g.byHeld[lock]) == 0 {
			delete(g.byHeld, lock)
		}
	}
}
