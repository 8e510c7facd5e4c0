package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// call is one that wants a lock.
type call struct {
	locker   *Locker
	ctx      context.Context
	name     store.Name
	settings *settings
	form     store.Form
	owner    string     // empty: a new one for each attempt
	enter    int64      // token of the lock to enter; 0: a free one will do
	outer    *lease     // of another Locker, which the context holds already
	multi    *MultiLock // of LockAll
}

func (c *call) waits() bool { return c.settings.Waits() }

// waiter is a call in the wait queue of its lock.
type waiter = waitqueue.Waiter[*call, *Lock, *position]

// claim is what the call asks Redis for, waiting by a position unless that is nil.
func (c *call) claim(p *position) store.Claim {
	l, s := c.locker, c.settings
	claim := store.Claim{Name: c.name, Form: c.form, Lease: s.Lease, Fixed: s.Fixed, Window: s.KeepFor, Enter: c.enter}
	if c.enter == 0 {
		claim.Attempt = s.Attempt
	}
	if p != nil {
		claim.Hold, claim.Resends, claim.Wait = p.Hold, &p.resends, l.waiting(p, c.name)
	} else {
		claim.Hold, claim.Resends = l.store.NewHold(), new(conn.Resends)
	}
	claim.Owner = c.ownerOf(claim.Hold)
	return claim
}

// ownerOf is the owner of a hold of the call: the one that it has chosen, if any.
func (c *call) ownerOf(hold string) string {
	return cmp.Or(c.owner, c.settings.OwnerBegin+hold)
}

// isPlain says that the owner is the one that a hold brings along.
func (c *call) isPlain() bool { return c.owner == "" && c.settings.OwnerBegin == "" }

// isAttempt says that the call is for an attempt at a request that counts once.
func (c *call) isAttempt() bool { return c.settings.Attempt != nil }

// try asks Redis once. It returns a lock, or who is in the way, or an error.
func (c *call) try(w *waiter) (*Lock, *store.Busy, error) {
	if c.settings.Resume {
		return c.resume()
	}
	p := c.position(w)
	claim := c.claim(p)
	granted, err := c.locker.store.Acquire(c.ctx, &claim)
	return c.orResume(c.conclude(w, p, &claim, granted, err))
}

// conclude takes the answer to a claim.
func (c *call) conclude(w *waiter, p *position, claim *store.Claim, granted store.Grant, err error) (*Lock, *store.Busy, error) {
	l := c.locker
	if err == nil {
		p.took(w, claim, granted)
		k, err := c.accept(claim, granted)
		l.decided(claim, k)
		return k, nil, err
	}
	l.decided(claim, nil)
	if busy := (*store.Busy)(nil); errors.As(err, &busy) {
		p.busy(w, busy)
		return nil, busy, nil
	}
	p.failed(w, err)
	switch {
	case errors.Is(err, store.ErrGone) && claim.Ticket != "":
		err = noTicket(c.name.Key())
	case errors.Is(err, store.ErrUpgrade):
		err = upgrade(c.name.Key())
	case claim.Attempt != nil:
		err = noAttempt(c.name.Key(), err)
	case errors.Is(err, store.ErrGone):
		err = lost(c.name.Key(), "it was deleted, or somebody else has taken it", nil)
	}
	return nil, nil, c.failed(err)
}

// decided tells members of a quorum that grant a claim late what became of it: a lock, or
// nothing.
func (l *Locker) decided(claim *store.Claim, k *Lock) {
	var held func() bool
	if k != nil && l.store.Can.Differ { // it costs memory
		held = k.held
	}
	l.store.Decided(claim, held)
}

// errLateGrant is why a lock that Redis granted is given back.
var errLateGrant = errors.New("the answer took longer than the lease")

// accept turns what Redis granted into a lock, unless it comes too late.
func (c *call) accept(claim *store.Claim, g store.Grant) (*Lock, error) {
	l := c.locker
	a := acquisition{form: c.form, owner: claim.Owner, redisToken: g.Token, length: g.Lease, fixed: g.Fixed, ahead: g.Ahead}
	resends := claim.Resends
	if !resends.MayArriveTwice() && !l.store.Can.Differ {
		resends = nil // nothing is under way any more; it is a part of something larger
	}
	// A fixed lease that was entered from elsewhere has run for a while.
	k := c.open(a, l.timesOf(g.Sent, min(g.Lease, g.TTL)), g.Token, claim.Hold, resends)
	s := k.lease
	s.resumed = claim.Ticket != ""
	if g.Attempt > 0 {
		s.attempt = &attempt{number: g.Attempt}
	}
	s.entered = s.resumed || s.attempt != nil // its release has more to do
	s.shared.Store(!c.isPlain() || s.entered)
	switch outer := c.outer; {
	case g.Outermost:
		s.keepFor = c.settings.KeepFor
	case outer != nil:
		s.keepFor, s.maxHoldAt = outer.keepFor, outer.maxHoldAt
		if g.Token == outer.redisToken {
			s.token = outer.token // passed on, it has one that Redis does not know
		}
	}

	var err error
	switch {
	case c.ctx.Err() != nil:
		err = gaveUp(c.ctx, c.name.Key())
	case s.since >= s.times.deadline:
		err = unavailable("taking", c.name.Key(), fmt.Errorf("%w of %v", errLateGrant, s.length))
	case !l.register(s):
		err = closed("taking", c.name.Key())
	}
	if err != nil {
		k.cancel(err)
		l.store.Withdraw(claim, s.length)
		return nil, err
	}
	return k, nil
}

// failed gives an error its kind.
func (c *call) failed(err error) error {
	ctx := c.ctx
	var failure *conn.Failure
	switch {
	case !errors.As(err, &failure): // it has one; a context's cause may be of any kind
		return err
	case errors.Is(ctx.Err(), context.Canceled), ctx.Err() != nil && errors.Is(err, ctx.Err()) && !c.locker.store.IsSilent(c.locker.timeout):
		return gaveUp(ctx, c.name.Key())
	default:
		return unavailable("taking", c.name.Key(), err)
	}
}
