package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// givingUp counts the releases by which this process gives up what it has of a lock, until Redis confirms them. The
// zero value is ready; the methods are safe for concurrent use.
type givingUp struct {
	unawaited atomic.Int32 // so many of them nobody waits for, and they are no compensations

	mu     sync.Mutex
	byLock map[string]*unconfirmedReleases
}

// unconfirmedReleases are those of one lock.
type unconfirmedReleases struct {
	releases int
	none     chan struct{} // closed when the last of them is confirmed; nil: nobody has asked for it
	until    time.Time     // when a call that finds the lock busy waits for them no longer
	last     *unawaited    // the last one that nobody waits for; nil: it is confirmed
}

// begin counts one, until end: one that nobody waits for, or with nil a compensation.
func (g *givingUp) begin(lock string, until time.Time, r *unawaited) {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.byLock[lock]
	if u == nil {
		u = new(unconfirmedReleases)
		if g.byLock == nil {
			g.byLock = map[string]*unconfirmedReleases{}
		}
		g.byLock[lock] = u
	}
	u.releases++
	if u.until = until; r != nil {
		u.last = r
		g.unawaited.Add(1)
	}
}

func (g *givingUp) end(lock string, r *unawaited) {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.byLock[lock]
	if u.last == r {
		u.last = nil
	}
	if r != nil {
		g.unawaited.Add(-1)
	}
	if u.releases--; u.releases > 0 {
		return
	}
	if delete(g.byLock, lock); u.none != nil {
		close(u.none)
	}
}

// lastOf returns the last one of a lock that nobody waits for; nil: there is none.
func (g *givingUp) lastOf(lock string) *unawaited {
	if g.unawaited.Load() == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.byLock[lock]; u != nil {
		return u.last
	}
	return nil
}

// of returns those of a lock as they are now; nil: there are none.
func (g *givingUp) of(lock string) *unconfirmedReleases {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.byLock[lock]; u != nil {
		if u.none == nil {
			u.none = make(chan struct{})
		}
		now := *u
		return &now
	}
	return nil
}

// confirmed waits until all that were under way are confirmed. It is false when ctx ends, or the time is over, before.
func (u *unconfirmedReleases) confirmed(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, u.until)
	defer cancel()
	return isDone(ctx, u.none)
}
