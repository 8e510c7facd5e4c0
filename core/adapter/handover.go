package adapter

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// Handover is [core.Lock.Handover] with a ticket that is known before, such as the id of a
// job. then starts what resumes the lock; when it fails, the lock is held as before and the
// error is that of then, joined with [core.ErrLost] if the lock is lost meanwhile. then must
// return before ttl is over. Everybody who can guess the ticket can take the lock.
func Handover(ctx context.Context, lock *core.Lock, ticket string, ttl time.Duration, then func() error) error {
	return inside.HandOver(ctx, lock, ticket, ttl, then)
}

// Ticket makes a call resume a lock that it finds handed over, by a ticket, as
// [core.Locker.Resume] does. If the ticket does not fit, the call competes like any other.
func Ticket(ticket string) core.Option {
	return inside.Option(func(s *settings) { s.Ticket = ticket })
}
