package core

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// slowInner is how long an inner call waits before the log tells of it.
const slowInner = 5 * time.Second

// inner is a call that wants a lock while its context holds others. In a circle of calls that
// wait for one another each one is such a call, so the others need not be known.
type inner struct {
	schedule.Entry
	call  *call
	holds []*Lock // innermost first
}

// innerCalls are those of all Lockers of the process that wait, by the names in Redis of the
// locks that their contexts hold.
type innerCalls struct {
	mu     sync.Mutex
	byHeld map[string]map[*inner]struct{}
}

var waitingInside = innerCalls{byHeld: map[string]map[*inner]struct{}{}}

// inner returns the call as one of a context that holds locks, nil if it holds none. What LockAll
// has taken so far it gives back by itself.
func (c *call) inner() *inner {
	var holds []*Lock
	for k := innermost(c.ctx); k != nil; k = k.outer {
		if (c.multi == nil || k.multi != c.multi) && k.isInTheWay() {
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
	return s.err == nil && s.has(k)
}

// take is that of the call. It fails at once when the wait would have no end, and waits no
// longer than the lease by default: other processes may be part of a circle.
func (i *inner) take() (*Lock, error) {
	c := i.call
	if i.isOutOfOrder() {
		k, busy, err := c.try(nil)
		if busy != nil {
			err = c.refuse(outOfOrder, taken(busy))
		}
		return k, i.noteHeld(err)
	}
	if c.multi == nil {
		c.boundWait()
	}
	if circle := waitingInside.enter(i); circle != nil {
		err := &BusyError{Key: c.name.Key(), RetryAfter: time.Second, HeldKeys: i.keys(), Circle: circle, refused: circular}
		c.locker.report.problem("calls wait for one another in a circle, one of them is refused", "key", c.name.Key(), "error", err)
		return nil, err
	}
	defer waitingInside.leave(i)
	c.locker.scheduler.Set(i, schedule.Now().Add(slowInner))
	defer c.locker.scheduler.Remove(i)
	k, err := c.take()
	return k, i.noteHeld(err)
}

func (i *inner) noteHeld(err error) error {
	if busy := (*BusyError)(nil); errors.As(err, &busy) {
		busy.HeldKeys = i.keys()
	}
	return err
}

// boundWait has a call that has not said how long it waits do so for a lease.
func (c *call) boundWait() {
	if c.settings.Wait == nil {
		s := *c.settings
		s.Wait = &s.Lease
		c.settings = &s
	}
}

// isOutOfOrder says that the lock sorts before one that the context holds, where LockAll has
// taken, or takes, one of them: whoever waits for it might close a circle with others who keep
// to that order.
func (i *inner) isOutOfOrder() bool {
	return slices.ContainsFunc(i.holds, func(k *Lock) bool {
		return (k.multi != nil || i.call.multi != nil) && k.lease.name.Lock() > i.call.name.Lock()
	})
}

// Due tells of a wait that is long, for a circle may go through other processes.
func (i *inner) Due(schedule.Time) {
	c := i.call
	c.locker.report.warn("a call waits for a lock while its context holds others", "key", c.name.Key(), "held", i.keys(), "for", slowInner)
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

// waitsFor says that the call cannot have its lock before the other one is done.
func (i *inner) waitsFor(other *inner) bool {
	c := i.call
	lock := c.name.Lock()
	first, queued := c.locker.queues.WaitFor(lock)
	return slices.ContainsFunc(other.holds, func(k *Lock) bool {
		s := k.lease
		goes := s.form.GoesWith(c.form) && !(queued && !s.form.GoesWith(first.Request.form) && first.Request.waitsForEver()) // nobody passes that one by
		return s.name.Lock() == lock && s.owner != c.owner && !goes &&
			(s.locker == c.locker || s.locker.store.SharesRedis(c.locker.store)) && k.isInTheWay()
	})
}

// waitsForEver says that nothing but the lock ends the wait, as far as is known.
func (c *call) waitsForEver() bool {
	_, bounded := c.ctx.Deadline()
	return !bounded && c.settings.Wait == nil
}

// enter adds a call that is about to wait, until leave, unless that closes a circle: then it
// returns the keys that the calls of the circle wait for, the new one first; each of the
// others holds what the one before it waits for.
func (w *innerCalls) enter(i *inner) (circle []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if circle = w.circle(i); circle != nil {
		return circle
	}
	for _, k := range i.holds {
		calls := w.byHeld[k.lease.name.Lock()]
		if calls == nil {
			calls = map[*inner]struct{}{}
			w.byHeld[k.lease.name.Lock()] = calls
		}
		calls[i] = struct{}{}
	}
	return nil
}

// circle is the shortest one that a new call closes. mu is held.
func (w *innerCalls) circle(start *inner) []string {
	behind := map[*inner]*inner{} // who was found to wait for it
	for next := []*inner{start}; len(next) > 0; next = next[1:] {
		i := next[0]
		if i.waitsFor(start) {
			keys := []string{start.call.name.Key()}
			for ; i != start; i = behind[i] {
				keys = slices.Insert(keys, 1, i.call.name.Key())
			}
			return keys
		}
		for holder := range w.byHeld[i.call.name.Lock()] {
			if behind[holder] == nil && i.waitsFor(holder) {
				behind[holder] = i
				next = append(next, holder)
			}
		}
	}
	return nil
}

func (w *innerCalls) leave(i *inner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range i.holds {
		calls := w.byHeld[k.lease.name.Lock()]
		delete(calls, i)
		if len(calls) == 0 {
			delete(w.byHeld, k.lease.name.Lock())
		}
	}
}
