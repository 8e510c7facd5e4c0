package core

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// busyFor is how long Redis may have failed when a wait ends, for the lock to be called busy
// all the same.
const busyFor = time.Second

// isSilent says that nobody knows any more whether the lock that a call waits for is busy:
// its queue has had nothing but errors, or nobody an answer.
func (c *call) isSilent(w *waiter) bool {
	since := w.State().Silence
	return !since.IsZero() && time.Since(since) >= busyFor || c.locker.store.IsSilent(busyFor)
}

// waitOver is the error of a call whose wait is over.
func (c *call) waitOver(w *waiter) error {
	if c.isSilent(w) {
		return unavailable("waiting for", c.key, conn.ErrNoAnswer)
	}
	return c.refuse(waitOver, w.State().Taken)
}

// gaveUp is the error of a waiting call whose context has ended.
func (c *call) gaveUp(w *waiter) error {
	if errors.Is(c.ctx.Err(), context.DeadlineExceeded) && c.isSilent(w) {
		return unavailable("waiting for", c.key, conn.Ended(c.ctx))
	}
	return gaveUp(c.ctx, c.key)
}
