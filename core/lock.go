package core

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
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

// open makes it a handle of a lease.
func (k *Lock) open(ctx context.Context, g *group, s *lease, id string, resends *conn.Resends) {
	k.lease, k.id, k.resends, k.under.call = s, id, resends, ctx
	k.outer, k.group, k.ctx = innermost(ctx), g, (*ownership)(k)
	if g != nil {
		k.under.made, k.under.cancel = ctx, g.cancel
	}
}

// observed notifies Observers of what a call has got: the lock, or an error. It returns that.
func (k *Lock) observed(n *observation, form store.Form, err error) (*Lock, error) {
	if err != nil {
		err = ofForm(form, err)
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

// isIn says that the handle is in one of these states.
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

// Unlock ends the hold; the last one of nested holds frees the lock and wakes who waits for it,
// anywhere. The handle's Context is done before anybody else can have the lock.
//
// It works on a context that is cancelled, or nil, and ignores its deadline, but blocks for [Timeout]
// at most. When Redis has not confirmed by then it returns [ErrUnavailable] and goes on in the
// background, until the lease ends. It returns [ErrNotHeld] when called again, [ErrLost] when the lock
// was lost before, and [ErrClosed] when the Locker took it away. It may hide a loss since the last
// renewal: when the first answer is lost on its way, so that the release is repeated, and when the
// lock is handed off to another call of this process, which learns of it with its next renewal.
func (k *Lock) Unlock(ctx context.Context) error { return k.finish(ctx, store.Done, false) }

// Abort is Unlock after a failure: it opens no [KeepFor] window, so the work can be tried again.
func (k *Lock) Abort(ctx context.Context) error { return k.finish(ctx, store.Failed, false) }

// finish ends the hold. With later, Redis may be asked in the background: then the error is what is
// known before.
func (k *Lock) finish(ctx context.Context, work store.Work, later bool) error {
	if k == nil {
		return notHeldError("")
	}
	s := k.lease
	if k.group != nil { // its owner has others of the call, and may be shared
		s.ownerKnown.Store(true)
	}
	r, err := s.leave(&k.handle)
	if err == ErrHandedOver {
		return nil
	}
	k.under.end(nil)
	switch {
	case err != nil:
		return err
	case r.last && s.handOffInMemory(&k.handle):
		return nil
	case later && r.canEndLater():
		k.finishLater(r, work)
		return nil
	default:
		return r.releaseAndRetire(lasting(ctx), work)
	}
}

// finishLater releases the hold in the background. It has the release on the heap, which others need not have.
func (k *Lock) finishLater(r releasing, work store.Work) {
	k.lease.engine.requests.Start(func() { k.reportFailure(r.releaseAndRetire(context.Background(), work)) })
}

func (k *Lock) reportFailure(err error) { k.lease.engine.reportRelease(k.ctx, err, k.Key()) }

// lasting is for a release, which goes on when its caller gives up. The values stay, for the
// client's hooks.
func lasting(ctx context.Context) context.Context {
	switch {
	case ctx == nil:
		return context.Background()
	case ctx.Done() == nil:
		return ctx
	default:
		return context.WithoutCancel(ctx)
	}
}
