package core

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Lock is a lock that was taken, or re-entered. Each successful [Locker.Lock]
// gives one, and each must be unlocked. Its methods are safe for concurrent use. Unlock and Abort of a nil
// one, such as are deferred before the error is looked at, return [ErrNotHeld].
type Lock struct {
	handle
	lease *lease
	outer *Lock // what the context held before
	group *group
	ctx   context.Context // its ownership, as Observers have it
}

// lockMemory is what a lock takes that was not entered, in one piece.
type lockMemory struct {
	lease lease
	first Lock
}

// group is the locks of one call of LockAll, which end together; nil: it is another call.
type group struct {
	cancel     context.CancelCauseFunc
	began      time.Time   // the call
	ownerKnown atomic.Bool // see acquisition
}

// waited is for how long the call has waited.
func (g *group) waited() time.Duration {
	if g == nil {
		return 0
	}
	return time.Since(g.began)
}

// observed notifies Observers of what a call has got: the lock, or an error. It returns that.
func (k *Lock) observed(n *observation, err error) (*Lock, error) {
	if err != nil {
		n.failed(err)
		return nil, err
	}
	if k.ctx = n.acquired(k.ctx, k.reentry); n != nil && !k.reentry {
		k.lease.observe(n)
	}
	return k, nil
}

// Key returns the key as the caller wrote it.
func (k *Lock) Key() string { return k.lease.name.Key() }

// Owner returns who holds the lock in Redis: "<process>:<11 random characters>", or as [Owner] said. A
// re-entry has its outer lock's owner, and a lock that was handed off in this process that of the one
// before it. It is for people, logs and comparison; for others to enter by there is [Lock.ShareOwner].
func (k *Lock) Owner() string { return k.lease.owner }

// ShareOwner returns the owner for others to enter the lock by, with the option [Owner], from
// anywhere until Unlock, but not in a quorum. Locks that LockAll took may have one owner: it then
// enters each. Whoever enters has the fencing token that Redis knows. That is a smaller one than this
// handle's where the lock was handed off in memory before: send Token along where a store checks it.
// From now on the lock is not handed off to another call of this process, which would have the same
// owner. It does not block.
func (k *Lock) ShareOwner() string {
	k.lease.ownerKnown.Store(true)
	return k.lease.owner
}

// Token returns the fencing token: strictly increasing from one acquisition of a key to the next. Pass
// it to the store that the lock protects, and have the store refuse a smaller token than it has seen:
// that is what stops a holder that was paused past its lease. A re-entry has its outer lock's token.
// Those who hold the lock together, by [Shared] or [Permits], have theirs in the order in which Redis
// granted it, which need not be that of their calls.
// That of another key means nothing: where a context may hold several locks, use [FromContextKey].
func (k *Lock) Token() int64 { return k.lease.token }

// Window returns the dedup window that a successful release will leave, counted from the acquisition,
// as [KeepFor] set it; 0 for none, and after [Lock.DropWindow]. A re-entry through the context has its
// outer lock's; one through [Owner] does not know it.
func (k *Lock) Window() time.Duration {
	if k.lease.hasFailed() {
		return 0
	}
	return k.lease.Window
}

// DropWindow says that the work has failed, although middleware, [Locker.Do] or [Wrap] will take it
// for a success, such as an error in a body with status 200. The lock stays held, and its release
// leaves no dedup window, as after [Lock.Abort]. It counts for all holds that the context has of the
// lock, by this Locker. It does not block; after the release it has no effect.
func (k *Lock) DropWindow() { k.lease.failed(store.Failed) }

// Context returns the context to work under. It descends from the one given to [Locker.Lock], carries
// ownership, so that locks taken with it re-enter, and is cancelled when the protection ends: by
// Unlock, or with cause [ErrLost], [ErrClosed], [ErrMaxHold] or [ErrHandedOver].
func (k *Lock) Context() context.Context { return k.ctx }

// Refresh renews the lease now, also a fixed one, which nothing else renews. It asks Redis, at most for
// [Timeout] or until ctx ends. It fails with [ErrLost] when the lock is no longer ours, also when ctx
// is done, [ErrNotHeld] after Unlock, and [ErrMaxHold] when the lock was held for too long. After
// [ErrUnavailable], or the context's error, the lease may or may not have been renewed.
func (k *Lock) Refresh(ctx context.Context) error {
	if err := cmp.Or(k.check(), k.usable()); err != nil {
		return err
	}
	s := k.lease
	s.mu.Lock()
	renewal := s.renewal()
	s.refreshed = true
	s.mu.Unlock()
	held, sent, err := s.engine.store.Refresh(ctx, renewal)
	if err != nil {
		return unanswered(ctx, "refreshing", k.Key(), err)
	}
	s.mu.Lock()
	_ = s.unlockAfter(s.renewed(held, nil, sent))
	return k.check()
}

// check returns why the handle cannot be used any more, or nil.
func (k *Lock) check() error {
	if !k.held() {
		return notHeldError(k.Key())
	}
	return k.lease.check()
}

// held says that the handle is not unlocked, nor being handed over.
func (k *Lock) held() bool { return k.isIn(life.In) }

func (k *Lock) isIn(states ...life.Handle) bool {
	k.lease.mu.Lock()
	defer k.lease.mu.Unlock()
	return slices.Contains(states, k.state)
}

// usable is check of the lease for what would prolong it.
func (k *Lock) usable() error {
	s := k.lease
	s.mu.Lock()
	overdue := s.life.IsOverdue()
	if loss := s.unlockAfter(s.life.Check(schedule.Now())); loss != nil || !overdue {
		return loss
	}
	return maxHoldError(k.Key())
}
