package core

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

const (
	compensateDelay    = 20 * time.Millisecond
	compensateDelayMax = 500 * time.Millisecond
)

// compensation repeats a release until Redis has confirmed it, or until there is
// nothing left to release.
type compensation struct {
	schedule.Entry
	*store.Compensation
	locker *Locker
	delay  time.Duration
}

// compensate sends a release in the background until Redis confirms it, for which Close
// waits, or until it is too late and the lease ends it.
func (l *Locker) compensate(c *store.Compensation) {
	l.unconfirmed.Begin()
	n := &compensation{Compensation: c, locker: l, delay: compensateDelay}
	n.tell(EventCompensating)
	l.scheduler.Set(n, schedule.Now())
}

// Due sends it.
func (c *compensation) Due(now schedule.Time) {
	if now > schedule.At(c.Until) {
		c.locker.report.warn("a release was never confirmed; the lock ended with its lease", "key", c.Name.Key())
		c.end()
		return
	}
	c.Send(c)
}

// Receive takes the outcome.
func (c *compensation) Receive(_ conn.Reply, err error) {
	switch {
	case err == nil:
		c.end()
		if !c.Passed {
			c.locker.queues.Signal(c.Name.Lock(), 0) // a call may wait for that, to ask with another hold
		}
		return
	case conn.IsClosed(err):
		c.locker.report.warn("a release was never confirmed, for the Redis client is closed; the lock ends with its lease", "key", c.Name.Key())
		c.end()
		return
	}
	c.locker.report.warn("a release failed and is repeated", "key", c.Name.Key(), "error", err)
	delay := c.delay
	c.delay = min(2*c.delay, compensateDelayMax)
	c.locker.scheduler.Set(c, schedule.Now().Add(delay))
}

func (c *compensation) tell(kind EventKind) {
	c.locker.tell(context.Background(), Event{Kind: kind, Key: c.Name.Key()})
}

func (c *compensation) end() {
	c.tell(EventCompensated) // before Close returns
	c.locker.unconfirmed.End()
}
