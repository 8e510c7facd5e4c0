package acquire

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// compensation repeats a release until Redis has confirmed it, or until there is
// nothing left to release.
type compensation struct {
	schedule.Timer
	*store.Compensation
	acquirer *Acquirer
}

// compensate sends a release in the background until Redis confirms it, for which Close waits, or until
// it is too late and the lease ends it. It is called under locks of the queues, too, and notifies nobody itself.
func (a *Acquirer) compensate(c *store.Compensation) {
	a.unconfirmed.Begin()
	a.pending.begin(c.Name.Lock(), time.Now().Add(a.Timeout), nil)
	a.Scheduler.Set(&compensation{Compensation: c, acquirer: a}, schedule.Now())
}

func (c *compensation) Due(schedule.Time) {
	c.acquirer.observers.Compensating(c.Name.Key())
	c.Send(c)
}

func (c *compensation) ReleaseAnswered(_ store.Released, err error) {
	a := c.acquirer
	switch {
	case err == nil:
	case conn.IsClosed(err):
		a.Warn(c.Context, "giving back a lock was never confirmed, for the Redis client is closed; "+
			"if it was taken it ends with its lease", "key", c.Name.Key())
	case time.Now().After(c.Until):
		a.Warn(c.Context, "giving back a lock was never confirmed; if it was taken it ended with its lease", "key", c.Name.Key())
	default:
		a.Warn(c.Context, "giving back a lock failed and is repeated", "key", c.Name.Key(), "error", err)
		c.Context = context.Background() // an outage lasts, and what has failed in it is not to keep its requests
		c.Send(c)
		return
	}
	a.pending.end(c.Name.Lock())
	a.observers.Compensated(c.Name.Key()) // before Close returns
	a.unconfirmed.End()
}
