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
	request *request
	holds   []*Lock // innermost first
}

// innerCalls are those of all Lockers of the process that wait, by the names in Redis of the
// locks that their contexts hold.
type innerCalls struct {
	mu     sync.Mutex
	byHeld map[string]map[*inner]struct{}
}

var waitingInside = innerCalls{byHeld: map[string]map[*inner]struct{}{}}

// inner returns the request as one of a context that holds locks, nil if it holds none.
func (r *request) inner() *inner {
	var holds []*Lock
	for k := innermost(r.ctx); k != nil; k = k.outer {
		if k.isInTheWay() {
			holds = append(holds, k)
		}
	}
	if holds == nil {
		return nil
	}
	return &inner{request: r, holds: holds}
}

// isInTheWay says that the lock is held, and that nothing but its Unlock, or a loss, ends that.
func (k *Lock) isInTheWay() bool {
	s := k.lease
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil && slices.Contains(s.handles, k)
}

// take is that of the request. It fails at once when the wait would have no end, and waits no
// longer than the lease by default: other processes may be part of a circle.
func (c *inner) take() (*Lock, error) {
	r := c.request
	if r.settings.Wait == nil {
		s := *r.settings
		s.Wait = &s.Lease
		r.settings = &s
	}
	if circle := waitingInside.enter(c); circle != nil {
		err := &BusyError{Key: r.key, RetryAfter: time.Second, Held: c.keys(), Circle: circle, refused: circular}
		r.locker.report.problem("calls wait for one another in a circle, one of them is refused", "key", r.key, "error", err)
		return nil, err
	}
	defer waitingInside.leave(c)
	r.locker.scheduler.Set(c, schedule.Now().Add(slowInner))
	defer r.locker.scheduler.Remove(c)
	k, err := r.take()
	if busy := (*BusyError)(nil); errors.As(err, &busy) {
		busy.Held = c.keys()
	}
	return k, err
}

// Due tells of a wait that is long, for a circle may go through other processes.
func (c *inner) Due(schedule.Time) {
	r := c.request
	r.locker.report.warn("a call waits for a lock while its context holds others", "key", r.key, "held", c.keys(), "for", slowInner)
}

// keys are those that the context holds, innermost first.
func (c *inner) keys() []string {
	var keys []string
	for _, k := range c.holds {
		if !slices.Contains(keys, k.key) {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// waitsFor says that the call cannot have its lock before the other one is done.
func (c *inner) waitsFor(other *inner) bool {
	r := c.request
	return slices.ContainsFunc(other.holds, func(k *Lock) bool {
		s := k.lease
		return s.name.Lock() == r.name.Lock() && s.owner != r.owner &&
			(s.locker == r.locker || s.locker.store.SharesRedis(r.locker.store)) && k.isInTheWay()
	})
}

// enter adds a call that is about to wait, until leave, unless that closes a circle: then it
// returns the keys that the calls of the circle wait for, the new one first; each of the
// others holds what the one before it waits for.
func (w *innerCalls) enter(c *inner) (circle []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range c.holds {
		calls := w.byHeld[k.lease.name.Lock()]
		if calls == nil {
			calls = map[*inner]struct{}{}
			w.byHeld[k.lease.name.Lock()] = calls
		}
		calls[c] = struct{}{}
	}
	if circle = w.circle(c); circle != nil {
		w.remove(c)
	}
	return circle
}

// circle is the shortest one that goes through a call. mu is held.
func (w *innerCalls) circle(start *inner) []string {
	behind := map[*inner]*inner{} // who was found to wait for it
	for next := []*inner{start}; len(next) > 0; next = next[1:] {
		c := next[0]
		for holder := range w.byHeld[c.request.name.Lock()] {
			if behind[holder] != nil || !c.waitsFor(holder) {
				continue
			}
			behind[holder] = c
			if holder != start {
				next = append(next, holder)
				continue
			}
			keys := []string{start.request.key}
			for ; c != start; c = behind[c] {
				keys = slices.Insert(keys, 1, c.request.key)
			}
			return keys
		}
	}
	return nil
}

func (w *innerCalls) leave(c *inner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(c)
}

func (w *innerCalls) remove(c *inner) {
	for _, k := range c.holds {
		calls := w.byHeld[k.lease.name.Lock()]
		delete(calls, c)
		if len(calls) == 0 {
			delete(w.byHeld, k.lease.name.Lock())
		}
	}
}
