package core

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/option"
)

// Handover parks the lock for whoever resumes it with the ticket, from any process, so that nobody else
// comes between: a request hands its lock on to the job that it starts. The lock is free when nobody
// has come within ttl, 1 ms to 366 days in whole milliseconds. A [KeepFor] window goes along, unless
// [Lock.DropWindow] was called, and opens when the work is done. The ticket has 128 random bits, of
// which Redis has a digest; whoever has it can take the lock.
//
// Afterwards Context ends with [ErrHandedOver], unless [Locker.Close] has ended it by then, and Unlock
// and Abort return nil: the lock is not this handle's any more. An error means that it is held as
// before, unless that is [ErrLost], or [ErrClosed] of Close: [ErrNotHeld] for an inner handle, one with
// an inner one open, and a lock that is shared or a permit; [ErrUnavailable] when Redis has not
// answered. A lock of [NewQuorum] cannot be handed over.
//
// It blocks for one request to Redis, whatever becomes of ctx, unless that ends before. When it is
// unknown whether the lock was parked, it has that taken back, and blocks until Redis has said so, at
// most until the lease or ttl ends. Nobody can enter the lock meanwhile, and Unlock returns
// [ErrNotHeld]: what was not handed over is released then.
func (k *Lock) Handover(ctx context.Context, ttl time.Duration) (ticket string, err error) {
	ticket = rand.Text()
	if err := k.handle.HandOver(ctx, ticket, ttl, nil); err != nil {
		return "", err
	}
	return ticket, nil
}

// Resume takes a lock that [Lock.Handover] has parked. Nobody else has had it since, and its fencing
// token is a greater one. One at a time can have it: while somebody has, the right ticket is refused
// with [*BusyError]. Unlock frees the lock, and opens the [KeepFor] window that it has. [Lock.Abort], or
// the end of the lease, parks it again for the ttl of Handover: the work can be tried again by the same
// ticket. The lock is not handed off in memory, and cannot be handed over once more.
//
// It never waits for the lock, and fails as [Locker.TryLock] does, and with [ErrTicket] when the ticket
// is unknown, used up or expired, or the lock was freed by [Locker.ForceUnlock]. What ctx holds does
// not matter. The options are those of Lock; [Shared], [Permits] and [Owner] are refused, as is a Locker
// of [NewQuorum].
func (l *Locker) Resume(ctx context.Context, key, ticket string, opts ...Option) (*Lock, error) {
	s, err := l.settings(option.OfTryLock, append(opts[:len(opts):len(opts)], NoWait()))
	switch {
	case err != nil:
		return nil, err
	case ticket == "":
		return nil, errorsOf{}.NoTicket(key)
	case !s.Form.Alone() || s.Owner.Chosen != "" || s.Attempt != nil || s.Quorum:
		return nil, errors.New("core: Resume takes a lock alone, for an owner of its own, and not from a quorum")
	}
	s.Ticket, s.Resume = ticket, true
	return l.lock(ctx, key, s)
}
