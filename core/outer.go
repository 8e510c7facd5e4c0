package core

import (
	"cmp"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// enterOuter enters the lock of that name which the context holds by this Locker. If it holds none, the error is
// errNotEntered. So it is for a lock of another Locker, which the call then enters in Redis: it asks as that one's owner.
func (c *lockCall) enterOuter() (*Lock, error) {
	for {
		k, err := c.enterFound()
		if !errors.Is(err, ErrNotHeld) {
			return k, err
		}
		c.want, c.outer = wanted(c.ctx, c.name, c.settings), nil // it was unlocked meanwhile, so the context does not hold it
	}
}

// enterFound is enterOuter, and fails with ErrNotHeld when the lock is unlocked meanwhile.
func (c *lockCall) enterFound() (*Lock, error) {
	outer := innermost(c.ctx)
	// One that is being handed over may be held again in a moment: a call that waits for it might wait for itself.
	for outer != nil && !(outer.lease.name.Lock() == c.name.Lock() && outer.isIn(life.In, life.Passing)) {
		outer = outer.outer
	}
	if outer == nil || c.settings.Resume || c.chosen != "" && c.chosen != outer.lease.owner {
		return nil, errNotEntered // there is none, or the call does not mean that one
	}
	s := outer.lease
	switch err := outer.usable(); {
	case err != nil:
		return nil, err
	case c.ctx.Err() != nil:
		return nil, c.gaveUp()
	case c.settings.Attempt != nil && (s.engine == c.engine || c.engine.store.SharesRedis(s.engine.store)):
		key := []string{c.name.Key()}
		return nil, &BusyError{Key: key[0], RetryAfter: time.Second, HeldKeys: key, Circle: key, refused: circular}
	case !s.Form.Includes(c.settings.Form):
		return nil, upgradeError(c.name.Key())
	case s.engine == c.engine:
		return c.reenter(s)
	}
	if err := s.join(nil); err != nil {
		return nil, err
	}
	c.outer, c.chosen = s, s.owner
	if c.engine.store.SharesRedis(s.engine.store) { // then the very lock that it holds must still be there
		c.askToEnter(s)
	}
	return nil, errNotEntered
}

// askToEnter has the call want one more hold of a lock, and no other lock.
func (c *lockCall) askToEnter(s *lease) { c.chosen, c.form, c.enter = s.owner, s.Form, s.redisToken }

// reenter adds a hold to a lock that the context holds. It joins the lease first, so
// that the outer handle's release does not stop the renewal meanwhile. ErrNotHeld: it came first.
func (c *lockCall) reenter(s *lease) (*Lock, error) {
	e := c.engine
	c.askToEnter(s)
	claim := c.claim(e.store.NewHold(), store.NotWaiting)
	k := new(Lock)
	k.reentry = true
	k.open(c.ctx, c.group, s, claim.Hold, &claim.Resends)
	if err := s.join(&k.handle); err != nil {
		return nil, err
	}
	granted, err := e.store.Acquire(c.ctx, &claim)
	switch {
	case err == nil:
		s.mu.Lock()
		k.resends = e.store.LateCopies(&claim)
		entered := s.life.Entered(schedule.Now(), &k.state, e.timesOf(granted.Sent, min(granted.Lease, s.Lease)))
		if err = s.unlockAfter(entered); err == nil {
			claim.Decided((*decidedLock)(k))
			return k, nil
		}
		claim.Withdraw(s.Lease)
	case errors.Is(err, store.ErrGone), errors.As(err, new(*store.Busy)):
		err = s.notFound()
	default:
		err = cmp.Or(s.check(), err)
	}
	claim.Decided((*decidedLock)(nil))
	_, _ = s.leave(k)
	s.retire(signalQueue, nil)
	return nil, c.requestError(&claim, err)
}
