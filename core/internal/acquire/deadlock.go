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

// nestedWait is a call that wants a lock while its context holds others. In a wait-for cycle each
// call is such a call, so the others need not be known.
type nestedWait struct {
	schedule.Timer
	call  *call
	holds []*lease.Handle // innermost first
}

// keys are those that the context holds, innermost first. nil has none.
func (n *nestedWait) keys() []string {
	if n == nil {
		return nil
	}
	var keys []string
	for _, h := range n.holds {
		if !slices.Contains(keys, h.Acquired().Name.Key()) {
			keys = append(keys, h.Acquired().Name.Key())
		}
	}
	return keys
}

// asNestedWait returns the call as one of a context that holds locks, nil if it holds none. What LockAll
// has taken so far it gives back by itself.
func (c *call) asNestedWait() *nestedWait {
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
func (n *nestedWait) isOutOfOrder() bool {
	return slices.ContainsFunc(n.holds, func(h *lease.Handle) bool {
		return (h.Group() != nil || n.call.group != nil) && h.Acquired().Name.Lock() > n.call.name.Lock()
	})
}

// begin begins a wait. It fails when the wait would have no end. Other processes may be part of a
// cycle, so the wait is no longer than the lease by default.
func (n *nestedWait) begin() error {
	c := n.call
	if c.group == nil {
		c.boundWait()
	}
	if circle := waitingInside.add(n); circle != nil {
		r := c.refusal(Circular)
		r.Circle = circle
		err := c.acquirer.errors.Busy(r)
		c.acquirer.Problem(c.ctx, "calls wait for one another in a circle, one of them is refused", "key", c.name.Key(), "error", err)
		return err
	}
	c.acquirer.Scheduler.Set(n, schedule.Now().Add(slowInner))
	return nil
}

func (n *nestedWait) end() {
	n.call.acquirer.Scheduler.Remove(n)
	waitingInside.remove(n)
}

// Due warns of a wait that is long, for a cycle may go through other processes.
func (n *nestedWait) Due(schedule.Time) {
	c := n.call
	c.acquirer.Warn(c.ctx, "a call waits for a lock while its context holds others",
		"key", c.name.Key(), "held", n.keys(), "for", slowInner)
}

// boundWait has a call that has not said how long it waits do so for a lease.
func (c *call) boundWait() {
	if c.settings.Wait == nil {
		s := *c.settings
		s.Wait = &s.Lease
		c.settings = &s
	}
}

// waitsFor says that the call cannot have its lock before the other one is done, which holds it.
func (n *nestedWait) waitsFor(other *nestedWait) bool {
	c := n.call
	return slices.ContainsFunc(other.holds, func(h *lease.Handle) bool {
		return h.Acquired().Name.Lock() == c.name.Lock() && h.Acquired().Owner != c.chosen && c.hasToWaitFor(h.Form()) &&
			(h.Backend() == &c.acquirer.Backend || h.Backend().Store.SharesRedis(c.acquirer.Store)) && h.IsInTheWay()
	})
}

// hasToWaitFor says that the call has to wait for a holder in a form. Where the two go together, the first call in the queue may have
// to, without end: nobody overtakes that one.
func (c *call) hasToWaitFor(holder store.Form) bool {
	first, queued := c.acquirer.queues.Oldest(c.name.Lock())
	isBehind := queued && first.Wants.waitsForEver() && first.Wants.form.WaitsFor(holder)
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
func (g *waitForGraph) add(n *nestedWait) (circle []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if circle = g.circle(n); circle != nil {
		return circle
	}
	for _, h := range n.holds {
		lock := h.Acquired().Name.Lock()
		g.byHeld[lock] = append(g.byHeld[lock], n)
	}
	return nil
}

// circle is the shortest cycle that a new call closes. mu is held.
func (g *waitForGraph) circle(from *nestedWait) []string {
	behind := map[*nestedWait]*nestedWait{} // who was found to wait for it
	for next := []*nestedWait{from}; len(next) > 0; next = next[1:] {
		n := next[0]
		if n.waitsFor(from) {
			keys := []string{from.call.name.Key()}
			for ; n != from; n = behind[n] {
				keys = slices.Insert(keys, 1, n.call.name.Key())
			}
			return keys
		}
		for _, holder := range g.byHeld[n.call.name.Lock()] {
			if behind[holder] == nil && n.waitsFor(holder) {
				behind[holder] = n
				next = append(next, holder)
			}
		}
	}
	return nil
}

func (g *waitForGraph) remove(n *nestedWait) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range n.holds {
		lock := h.Acquired().Name.Lock()
		g.byHeld[lock] = slices.DeleteFunc(g.byHeld[lock], func(other *nestedWait) bool { return other == n })
		if len(g.byHeld[lock]) == 0 {
			delete(g.byHeld, lock)
		}
	}
}
