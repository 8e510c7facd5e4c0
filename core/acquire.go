package core

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Lock takes the lock of key, or enters it once more when ctx holds it already.
// It waits until the lock is free, ctx is done, or [Wait] is over. A call whose ctx holds
// another lock waits for a lease at most, unless Wait says otherwise. Waiting calls
// of one Locker are served in order, and so are the processes they wait in. The lock is
// renewed until it is unlocked, also after ctx was cancelled.
//
// Errors are a [*BusyError] or a [*LockError], apart from those of options and keys:
//
//   - [ErrNotAcquired]: somebody else holds the lock, then it is a [*BusyError]; or ctx ended
//     first, then it is the context's error as well.
//   - [ErrDeadlock], which is ErrNotAcquired as well, at once: ctx holds another lock, and the
//     wait would not end.
//   - [ErrNoPermit], which is ErrNotAcquired as well: a call with [Permits] got none.
//   - [ErrUpgrade], at once: ctx or the [Owner] has the lock in another form.
//   - [ErrUnavailable]: Redis did not answer within [Timeout], in which a call whose connection
//     breaks is sent again, or answered with an error. A call that was waiting already endures
//     this for 5 s. It fails sooner when its wait ends, or a deadline of ctx, while Redis has
//     failed for a second or more. A deadline that ends before that is [ErrNotAcquired], unless
//     Redis has not answered anybody for Timeout.
//   - [ErrLost]: ctx held the lock and has lost it. [ErrMaxHold]: ctx has held it for too long.
//   - [ErrClosed], [ErrInvalidKey].
//
// Whatever the error, nothing stays locked: an outcome that is unknown is compensated in the
// background.
func (l *Locker) Lock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	s, err := l.settings(opts)
	if err != nil {
		return nil, err
	}
	return l.obtain(ctx, key, s)
}

// TryLock is [Locker.Lock] that never waits for a busy lock, nor takes one that has
// just become free for a process that waits. It blocks for one request to Redis, at
// most for [Timeout].
func (l *Locker) TryLock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	if len(opts) == 0 {
		return l.obtain(ctx, key, &l.unwaiting)
	}
	s, err := l.settings(append(opts[:len(opts):len(opts)], NoWait()))
	if err != nil {
		return nil, err
	}
	return l.obtain(ctx, key, s)
}

// obtain is acquire, and tells the Observers.
func (l *Locker) obtain(ctx context.Context, key string, s *settings) (*Lock, error) {
	if l.defaults.Observers == nil {
		k, err := l.acquire(ctx, key, s)
		return k, ofForm(s.Form, err)
	}
	ctx, tell := l.tellWaiting(ctx, key, 1, s)
	k, err := l.acquire(ctx, key, s)
	err = ofForm(s.Form, err)
	tell(k, err)
	return k, err
}

func (l *Locker) acquire(ctx context.Context, key string, s *settings) (*Lock, error) {
	n, err := l.name(key)
	if err != nil {
		return nil, err
	}
	c := &call{locker: l, ctx: ctx, name: n, settings: s, form: s.Form, owner: s.Owner}
	outer, err := c.held()
	switch {
	case err != nil:
		return nil, err
	case outer != nil:
		return c.reenter(outer)
	case !l.enter():
		return nil, closed("taking", key)
	}
	defer l.underWay.End()
	l.compareClocks()
	if ctx.Err() != nil {
		return nil, gaveUp(ctx, key)
	}
	return c.obtain()
}

// held returns the lock of that name which the context holds, if it is of this Locker. One of
// another Locker's the call will enter.
func (c *call) held() (*Lock, error) {
	l, outer := c.locker, holder(c.ctx, c.name.Lock())
	if outer == nil || c.settings.Resume || c.owner != "" && c.owner != outer.lease.owner {
		return nil, nil
	}
	if err := outer.lease.usable(); err != nil {
		return nil, err
	}
	if c.ctx.Err() != nil {
		return nil, gaveUp(c.ctx, c.name.Key())
	}
	if !outer.lease.form.Includes(c.settings.Form) {
		return nil, upgrade(c.name.Key())
	}
	if outer.lease.locker == l {
		return outer, nil
	}
	// If that one uses this Redis, then the very lock it holds must still be there.
	c.owner, c.outer = outer.lease.owner, outer.lease
	if err := c.outer.join(nil); err != nil {
		return nil, err
	}
	if l.store.SharesRedis(outer.lease.locker.store) {
		c.form, c.enter = outer.lease.form, outer.lease.redisToken
	}
	return nil, nil
}

// obtain takes a lock that the context does not hold.
func (c *call) obtain() (*Lock, error) {
	if c.waits() {
		if i := c.inner(); i != nil {
			return i.take()
		}
	}
	return c.take()
}

// reenter adds a hold to a lock that the context holds. It joins the lease first, so
// that the outer handle's release does not stop the renewal meanwhile.
func (c *call) reenter(outer *Lock) (*Lock, error) {
	l, lease := c.locker, outer.lease
	c.owner, c.form, c.enter = lease.owner, lease.form, lease.redisToken
	claim := c.claim(nil)
	k := &Lock{reentry: true}
	k.begin(c, lease, claim.Hold, claim.Resends)
	if err := lease.join(k); err != nil {
		k.cancel(err)
		return nil, err
	}
	granted, err := l.store.Acquire(c.ctx, &claim)
	if err == nil {
		lease.mu.Lock()
		if !lease.fixed {
			lease.extend(granted.Sent, min(granted.Lease, lease.length))
			lease.schedule()
		}
		lease.mu.Unlock()
		if err = lease.check(); err == nil {
			l.decided(&claim, k)
			return k, nil
		}
		l.store.Withdraw(&claim, lease.length)
	} else if isElsewhere(err) {
		err = lease.vanished()
	} else if gone := lease.check(); gone != nil {
		err = gone
	}
	l.decided(&claim, nil)
	_, _ = lease.leave(k)
	lease.retire(true, nil)
	err = c.failed(err)
	k.cancel(err) // which may be c.ctx as well
	return nil, err
}

// isElsewhere says that the lock to enter is not there any more, or somebody else's.
func isElsewhere(err error) bool {
	var busy *store.Busy
	return errors.Is(err, store.ErrGone) || errors.As(err, &busy)
}
