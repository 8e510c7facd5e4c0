package core

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Lock is a lock that was taken, or re-entered. Each successful [Locker.Lock]
// gives one, and each must be unlocked. Its methods are safe for concurrent use. Unlock and Abort of a nil
// one, such as are deferred before the error is looked at, return [ErrNotHeld]. A copy stands for the same lock.
type Lock struct{ handle *lease.Handle }

// lockOf is the one Lock of a handle.
func lockOf(h *lease.Handle) *Lock {
	if h == nil {
		return nil
	}
	return h.Public(newLock).(*Lock)
}

func newLock(h *lease.Handle) any { return &Lock{h} }

// Key returns the key as the caller wrote it.
func (k *Lock) Key() string { return k.handle.Acquired().Name.Key() }

// Owner returns who holds the lock in Redis: "<process>:<11 random characters>", or as [Owner] said. A
// re-entry has its outer lock's owner, and a lock that was handed off in this process that of the one
// before it. It is for people, logs and comparison; for others to enter by there is [Lock.ShareOwner].
func (k *Lock) Owner() string { return k.handle.Acquired().Owner }

// ShareOwner returns the owner for others to enter the lock by, with the option [Owner], from
// anywhere until Unlock, but not in a quorum; "" after Unlock. Locks that LockAll took may have one
// owner: it then enters each. Whoever enters has the fencing token that Redis knows. That is a smaller
// one than this handle's where the lock was handed off in memory before: send Token along where a store
// checks it. From now on the lock is not handed off to another call of this process, which would have
// the same owner. It does not block.
func (k *Lock) ShareOwner() string { return k.handle.ShareOwner() }

// Token returns the fencing token: strictly increasing from one acquisition of a key to the next. Pass
// it to the store that the lock protects, and have the store refuse a smaller token than it has seen:
// that is what stops a holder that was paused past its lease. A re-entry has its outer lock's token.
// Those who hold the lock together, by [Shared] or [Permits], have theirs in the order in which Redis
// granted it, which need not be that of their calls.
// That of another key means nothing: where a context may hold several locks, use [FromContextKey].
func (k *Lock) Token() int64 { return k.handle.Acquired().Token }

// Window returns the dedup window that a successful release will leave, counted from the acquisition,
// as [KeepFor] set it; 0 for none, and after [Lock.DropWindow]. A re-entry through the context has its
// outer lock's; one through [Owner] does not know it.
func (k *Lock) Window() time.Duration { return k.handle.Window() }

// DropWindow says that the work has failed, although middleware, [Locker.Do] or [Wrap] will take it
// for a success, such as an error in a body with status 200. The lock stays held, and its release
// leaves no dedup window, as after [Lock.Abort]. It counts for all holds that the context has of the
// lock, by this Locker. It does not block; after the release it has no effect.
func (k *Lock) DropWindow() { k.handle.Fail(store.Failed) }

// Context returns the context to work under. It descends from the one given to [Locker.Lock], carries
// ownership, so that locks taken with it re-enter, and is cancelled when the protection ends: by
// Unlock, or with cause [ErrLost], [ErrClosed], [ErrMaxHold] or [ErrHandedOver].
func (k *Lock) Context() context.Context { return k.handle.Context() }

// Refresh renews the lease now, also a fixed one, which nothing else renews. It asks Redis, at most for
// [Timeout] or until ctx ends. It fails with [ErrLost] when the lock is no longer ours, also when ctx
// is done, [ErrNotHeld] after Unlock, and [ErrMaxHold] when the lock was held for too long. After
// [ErrUnavailable], or the context's error, the lease may or may not have been renewed.
func (k *Lock) Refresh(ctx context.Context) error { return k.handle.Refresh(ctx) }

// FromContext returns the innermost lock that ctx holds: one taken with a context that ctx descends
// from, and not unlocked since. A lock that was lost is still returned: its Context says so. It does
// not block. Where ctx may hold several, by two middlewares or [Locker.DoAll], that is whichever was
// taken last: ask by [FromContextKey] before its token is used or it is handed over.
func FromContext(ctx context.Context) (*Lock, bool) {
	h := lease.Find(ctx, (*lease.Handle).Held)
	return lockOf(h), h != nil
}

// FromContextKey returns the innermost lock of a key that ctx holds, as [FromContext] does. The key
// is as the caller wrote it, which [Lock.Key] returns: without [Prefix], and whichever Locker took
// it. Those that [Locker.LockAll] took count, each by its key: they have their tokens, and can be
// handed over one by one; [MultiLock.Unlock] unlocks the rest. It does not block.
func FromContextKey(ctx context.Context, key string) (*Lock, bool) {
	h := lease.Find(ctx, func(h *lease.Handle) bool { return h.Acquired().Name.Key() == key && h.Held() })
	return lockOf(h), h != nil
}

// Detach returns a context with the values and the cancellation of ctx that owns no lock: what runs
// under it competes for locks like a stranger, also for those that ctx holds. It is for work that must
// not inherit the protection of its starter, such as a goroutine that outlives the handler.
func Detach(ctx context.Context) context.Context { return lease.Disown(ctx) }

// Unlock ends the hold; the last one of nested holds frees the lock and wakes who waits for it,
// anywhere. The handle's Context is done before anybody else can have the lock.
//
// It works on a context that is cancelled, or nil, and ignores its deadline, but blocks for [Timeout]
// at most, unless a hook of the client's begins to block (see [New]). When Redis has not confirmed by
// then it returns [ErrUnavailable] and goes on in the background, until the lease ends. It returns
// [ErrNotHeld] when called again, [ErrLost] when the lock was lost before, and [ErrClosed] when the
// Locker took it away. It may hide a loss since the last renewal: when the first answer is lost on its
// way, so that the release is repeated, and when the lock is handed off to another call of this
// process, which learns of it with its next renewal.
func (k *Lock) Unlock(ctx context.Context) error {
	return k.finish(ctx, store.Done, option.AwaitedRelease)
}

// Abort is Unlock after a failure: it opens no [KeepFor] window, so the work can be tried again.
func (k *Lock) Abort(ctx context.Context) error {
	return k.finish(ctx, store.Failed, option.AwaitedRelease)
}

func (k *Lock) usable() error  { return k.handle.Usable() }
func (k *Lock) keys() []string { return []string{k.Key()} }

// finish ends the hold. In the background the error is what is known before Redis is asked.
func (k *Lock) finish(ctx context.Context, work store.Work, mode option.ReleaseMode) error {
	if k == nil || k.handle == nil {
		return errorsOf{}.NotHeld("")
	}
	return k.handle.Release(ctx, work, mode)
}
