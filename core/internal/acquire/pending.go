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
func (p *pendingReleases) begin(lock string, until time.Time, r *backgroundRelease) {
	p.releases.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	ofLock := p.byLock[lock]
	if ofLock.none == nil {
		ofLock.none = make(chan struct{})
	}
	if p.byLock == nil {
		p.byLock = map[string]pendingOfLock{}
	}
	ofLock.releases++
	ofLock.until, ofLock.last = until, r
	p.byLock[lock] = ofLock
}

func (p *pendingReleases) end(lock string) {
	p.releases.Add(-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	ofLock := p.byLock[lock]
	ofLock.releases--
	if p.byLock[lock] = ofLock; ofLock.releases == 0 {
		delete(p.byLock, lock)
		close(ofLock.none)
	}
}

// of returns those of a lock as they are now.
func (p *pendingReleases) of(lock string) (now pendingOfLock) {
	if p.releases.Load() == 0 {
		return now
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byLock[lock]
}

// await waits until all that were under way are confirmed. It is false when ctx ends, or the time is over, before.
func (p pendingOfLock) await(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, p.until)
	defer cancel()
	return schedule.Await(ctx, p.none)
}
