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
