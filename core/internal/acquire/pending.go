package acquire

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// pendingReleases counts the releases by which this process gives up what it has of a lock, until Redis confirms them:
// compensations, and those that nobody waits for. The zero value is ready; the methods are safe for concurrent use.
type pendingReleases struct {
	releases atomic.Int32

	mu     sync.Mutex
	byLock map[string]pendingOfLock
}

// pendingOfLock is those of one lock.
type pendingOfLock struct {
	releases int
	last     *backgroundRelease // nil: the last one cannot be withdrawn
	none     chan struct{}      // closed when the last of them is confirmed
	until    time.Time          // when a call that finds the lock busy waits for them no longer
}

// begin counts a release, until end; r is nil where it cannot be withdrawn.
func (g *pendingReleases) begin(lock string, until time.Time, r *backgroundRelease) {
	g.releases.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.byLock[lock]
	if u.none == nil {
		u.none = make(chan struct{})
	}
	if g.byLock == nil {
		g.byLock = map[string]pendingOfLock{}
	}
	u.releases++
	u.until, u.last = until, r
	g.byLock[lock] = u
}

func (g *pendingReleases) end(lock string) {
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
func (g *pendingReleases) of(lock string) (now pendingOfLock) {
	if g.releases.Load() == 0 {
		return now
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byLock[lock]
}

// confirmed waits until all that were under way are confirmed. It is false when ctx ends, or the time is over, before.
func (u pendingOfLock) confirmed(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, u.until)
	defer cancel()
	return schedule.IsDone(ctx, u.none)
}
