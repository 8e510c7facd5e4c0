package core

import (
	"cmp"
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// pingLease is for how long a lock may stay that Ping has taken and could not release.
const pingLease = 5 * time.Second

// Ping reports whether locks can be taken: for the start of a program, and for its
// readiness probe. It takes a lock of its own, under the Locker's prefix, and releases it,
// so that it finds out all that a first request would: an address that nobody listens at,
// a missing password or permission, a replica that does not accept writes. Then it looks
// whether the client, unless it is a cluster's, has reached a node of one, which has only a part of the keys. In a
// cluster it asks the master of the first hash slot, in a quorum all members.
//
// It blocks for three requests at most, each for [Timeout] at most, or until ctx ends, and
// fails with [ErrUnavailable] or [ErrClosed], or with [ErrNotAcquired] and the context's
// error. The text has the details that other errors leave to [Detail]: it is not for clients.
// Observers do not hear of it. It is safe for concurrent use.
func (l *Locker) Ping(ctx context.Context) error {
	s := l.defaults
	s.Wait = new(time.Duration)
	s.Lease, s.Fixed, s.KeepFor, s.MaxHold = max(pingLease, 3*l.timeout), false, 0, 0
	// A key of its own: one that an earlier Ping could not release would be busy, which says
	// nothing about whether Redis accepts writes.
	k, err := l.acquire(ctx, store.InFirstSlot(l.defaults.Prefix, "latchkey:ping:"+l.store.NewHold()+":"), &s)
	if err == nil {
		err = k.Unlock(ctx)
	}
	if err == nil || conn.IsMoved(err) {
		err = cmp.Or(l.findDivided(ctx), err)
	}
	if err != nil {
		return &detailedError{Detail(err), err}
	}
	return nil
}

func (l *Locker) findDivided(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if err := l.store.FindDivided(ctx, l.defaults.Prefix); err != nil {
		return &LockError{kind: ErrUnavailable, text: "redis unavailable", cause: err}
	}
	return nil
}
