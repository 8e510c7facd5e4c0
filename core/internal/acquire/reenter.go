package acquire

import (
	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// reenterHeld enters the lock of that name which the context holds by this Locker. It returns nil, without an error, if it holds
// none. So it is for a lock of another Locker, which the call then enters in Redis: it asks as that one's owner.
func (c *call) reenterHeld() (*lease.Handle, error) {
	// One that is being handed over may be held again in a moment: a call that waits for it might wait for itself.
	outer := lease.Find(c.ctx, func(h *lease.Handle) bool { return h.Acquired().Name.Lock() == c.name.Lock() && h.MayBeHeld() })
	if outer == nil || c.settings.Resume || c.chosen != "" && c.chosen != outer.Acquired().Owner {
		return nil, nil // there is none, or the call does not mean that one
	}
	isOwn := outer.Backend() == &c.acquirer.Backend
	sharesRedis := isOwn || c.acquirer.Store.SharesRedis(outer.Backend().Store)
	switch err := outer.Usable(); {
	case err != nil:
		return nil, err
	case c.ctx.Err() != nil:
		return nil, c.gaveUp()
	case c.settings.Attempt != nil && sharesRedis:
		r := c.refusal(Circular)
		r.HeldKeys = []string{r.Key}
		r.Circle = r.HeldKeys
		return nil, c.acquirer.errors.Busy(r)
	case !outer.Form().Includes(c.settings.Form):
		return nil, c.acquirer.errors.Upgrade(c.name.Key())
	case isOwn:
		return c.reenter(outer)
	}
	if enters, err := outer.EnterElsewhere(); err != nil {
		return nil, err
	} else if !enters {
		return c.reenterHeld() // it was unlocked meanwhile, and is not found again
	}
	c.outer, c.chosen = outer, outer.Acquired().Owner
	if sharesRedis { // then the very lock that it holds must still be there
		c.aimAt(outer)
	}
	return nil, nil
}

// isOuterUnlocked says that a call has failed because the lock of another Locker that it was to enter was unlocked meanwhile.
func (c *call) isOuterUnlocked(err error) bool {
	if c.outer == nil || !c.acquirer.errors.IsLost(err) {
		return false
	}
	enters, loss := c.outer.EnterElsewhere()
	return !enters && loss == nil
}

// forgetOuter is called when the context does not hold the lock any more: the call takes it as any other.
func (c *call) forgetOuter() { c.spec, c.outer = specOf(c.ctx, c.name, c.settings), nil }

// aimAt has the call want one more hold of a lock, and no other lock.
func (c *call) aimAt(outer *lease.Handle) {
	c.chosen, c.form, c.enter = outer.Acquired().Owner, outer.Form(), outer.Acquired().RedisToken
}

// reenter adds a hold to a lock that the context holds.
func (c *call) reenter(outer *lease.Handle) (*lease.Handle, error) {
	c.aimAt(outer)
	claim := c.claim(c.acquirer.Store.NewHold(), store.NotWaiting)
	h, err := outer.Enter(c.ctx, c.group, &claim)
	switch {
	case h != nil:
		return h, nil
	case err == nil: // it was unlocked first, and is not found again
		c.forgetOuter()
		return c.reenterHeld()
	}
	return nil, c.claimError(&claim, err)
}
