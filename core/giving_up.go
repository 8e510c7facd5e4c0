package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// givingUp counts the releases by which this process gives up what it has of a lock, until Redis confirms them:
// compensations, and those that nobody waits for. The zero value is ready; the methods are safe for concurrent use.
type givingUp struct {
	releases atomic.Int32

	mu     sync.Mutex
	byLock map[string]unconfirmedReleases
}

// unconfirmedReleases are those of one lock.
type unconfirmedReleases struct {
	releases int
	last     *unawaited    // nil: the last one is a compensation
	none     chan struct{} // closed when the last of them is confirmed
	until    time.Time     // when a call that finds the lock busy waits for them no longer
}

// begin counts a release, until end; r is nil for a compensation.
func (g *givingUp) begin(lock string, until time.Time, r *unawaited) {
	g.releases.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.byLock[lock]
	if u.none == nil {
		u.none = make(chan struct{})
	}
	if g.byLock == nil {
		g.byLock = map[string]unconfirmedReleases{}
	}
	u.releases++
	u.until, u.last = until, r
	g.byLock[lock] = u
}

func (g *givingUp) end(lock string) {
	g.releases.Add(-1)
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.byLock[lock]
	u.releases--
	if g.byLock[lock] = u; u.releases == 0 {
		delete(g.byLock, lock)
		close(u.none)
	}
}

// of returns those of a lock as they are now.
func (g *givingUp) of(lock string) (now unconfirmedReleases) {
	if g.releases.Load() == 0 {
		return now
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byLock[lock]
}

// confirmed waits until all that were under way are confirmed. It is false when ctx ends, or the time is over, before.
func (u unconfirmedReleases) confirmed(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, u.until)
	defer cancel()
	return isDone(ctx, u.none)
}
