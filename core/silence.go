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
func (r *request) isSilent(w *waiter) bool {
	since := w.State().Silence
	return !since.IsZero() && time.Since(since) >= busyFor || r.locker.store.IsSilent(busyFor)
}

// waitOver is the error of a call whose wait is over.
func (r *request) waitOver(w *waiter) error {
	if r.isSilent(w) {
		return unavailable("waiting for", r.key, conn.ErrNoAnswer)
	}
	return r.refuse(waitOver, w.State().Taken)
}

// gaveUp is the error of a waiting call whose context has ended.
func (r *request) gaveUp(w *waiter) error {
	if errors.Is(r.ctx.Err(), context.DeadlineExceeded) && r.isSilent(w) {
		return unavailable("waiting for", r.key, conn.Ended(r.ctx))
	}
	return gaveUp(r.ctx, r.key)
}
