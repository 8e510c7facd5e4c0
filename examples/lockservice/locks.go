// Package lockservice is a recipe to copy: locks that one process takes and another frees, which knows a key and a ticket only,
// over HTTP (Handler), or over gRPC (adapters/grpclock/example_lockservice_test.go).
package lockservice

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// Locks are held for clients, and by no process: any of those that serve them may die.
type Locks struct {
	Locker *core.Locker
	TTL    time.Duration // a client that does nothing for so long has lost its lock
}

// Take takes the lock of a key, or fails with core.ErrNotAcquired. Whoever has the ticket has the lock.
func (l Locks) Take(ctx context.Context, key string) (ticket string, err error) {
	lock, err := l.Locker.TryLock(ctx, key)
	if err != nil {
		return "", err
	}
	defer lock.Unlock(ctx) // does nothing after Handover
	return lock.Handover(ctx, l.TTL)
}

// Extend keeps the lock for another TTL, or fails with core.ErrTicket: it is lost.
func (l Locks) Extend(ctx context.Context, key, ticket string) error {
	lock, err := l.Locker.Resume(ctx, key, ticket)
	if err != nil {
		return err
	}
	return lock.Abort(ctx) // parks it again
}

// Free frees the lock, or fails with core.ErrTicket: it was lost, or freed before.
func (l Locks) Free(ctx context.Context, key, ticket string) error {
	lock, err := l.Locker.Resume(ctx, key, ticket)
	if err != nil {
		return err
	}
	return lock.Unlock(ctx)
}
