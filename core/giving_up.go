package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
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

const (
	compensateDelay    = 20 * time.Millisecond
	compensateDelayMax = 500 * time.Millisecond
)

// compensation repeats a release until Redis has confirmed it, or until there is
// nothing left to release.
type compensation struct {
	schedule.Entry
	*store.Compensation
	engine *engine
	delay  time.Duration // after the next failure; 0: it was not sent yet
}

// compensate sends a release in the background until Redis confirms it, for which Close waits, or until
// it is too late and the lease ends it. It is called under locks of the queues, too, and notifies nobody itself.
func (e *engine) compensate(c *store.Compensation) {
	e.unconfirmed.Begin()
	e.givingUp.begin(c.Name.Lock(), time.Now().Add(e.timeout), nil)
	e.scheduler.Set(&compensation{Compensation: c, engine: e}, schedule.Now())
}

func (c *compensation) Due(now schedule.Time) {
	if c.delay == 0 {
		c.delay = compensateDelay
		c.engine.notify(context.Background(), Event{Kind: EventCompensating, Key: c.Name.Key()})
	}
	if now > schedule.At(c.Until) {
		c.engine.report.warn(c.Context, "giving back a lock was never confirmed; if it was taken it ended with its lease", "key", c.Name.Key())
		c.over()
		return
	}
	c.Send(c)
}

func (c *compensation) Answered(_ store.Released, err error) {
	e := c.engine
	switch {
	case err == nil:
		c.over()
	case conn.IsClosed(err):
		e.report.warn(c.Context, "giving back a lock was never confirmed, for the Redis client is closed; "+
			"if it was taken it ends with its lease", "key", c.Name.Key())
		c.over()
	default:
		e.report.warn(c.Context, "giving back a lock failed and is repeated", "key", c.Name.Key(), "error", err)
		c.Context = context.Background() // an outage lasts, and what has failed in it is not to keep its requests
		delay := c.delay
		c.delay = min(2*c.delay, compensateDelayMax)
		e.scheduler.Set(c, schedule.Now().Add(delay))
	}
}

func (c *compensation) over() {
	c.engine.givingUp.end(c.Name.Lock())
	c.engine.notify(context.Background(), Event{Kind: EventCompensated, Key: c.Name.Key()}) // before Close returns
	c.engine.unconfirmed.End()
}
