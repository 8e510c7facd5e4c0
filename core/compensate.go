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
	engine *engine
	delay  time.Duration
}

// compensate sends a release in the background until Redis confirms it, for which Close
// waits, or until it is too late and the lease ends it.
func (e *engine) compensate(c *store.Compensation) {
	e.unconfirmed.Begin()
	n := &compensation{Compensation: c, engine: e, delay: compensateDelay}
	n.notify(EventCompensating)
	e.scheduler.Set(n, schedule.Now())
}

// Due sends it.
func (c *compensation) Due(now schedule.Time) {
	if now > schedule.At(c.Until) {
		c.engine.report.warn("a release was never confirmed; the lock ended with its lease", "key", c.Name.Key())
		c.end()
		return
	}
	c.Send(c)
}

// Receive takes the outcome.
func (c *compensation) Receive(_ conn.Reply, err error) {
	e := c.engine
	switch {
	case err == nil:
		c.end()
	case conn.IsClosed(err):
		e.report.warn("a release was never confirmed, for the Redis client is closed; the lock ends with its lease", "key", c.Name.Key())
		c.end()
	default:
		e.report.warn("a release failed and is repeated", "key", c.Name.Key(), "error", err)
		delay := c.delay
		c.delay = min(2*c.delay, compensateDelayMax)
		e.scheduler.Set(c, schedule.Now().Add(delay))
	}
}

func (c *compensation) notify(kind EventKind) {
	c.engine.notify(context.Background(), Event{Kind: kind, Key: c.Name.Key()})
}

func (c *compensation) end() {
	c.notify(EventCompensated) // before Close returns
	c.engine.unconfirmed.End()
}
