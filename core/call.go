package core

import (
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// lockCall is a call that wants a lock.
type lockCall struct {
	want
	engine *engine
	outer  *lease // of another Locker, which the context holds already
	group  *group
	room   *held // for the lock, in the memory of all locks of a call; nil: it has none
}

// held is a lock that was taken, in one piece.
type held struct {
	lease lease
	first Lock
}

// enterOuter enters the lock of that name which the context holds, if this Locker took it. For one of another
// Locker it returns nil, and has the call enter that one: it sets chosen and outer, and on the same Redis form and enter.
func (c *lockCall) enterOuter() (k *Lock, err error) {
	defer func() {
		if errors.Is(err, ErrNotHeld) { // it was unlocked meanwhile, so the context does not hold it
			c.want, c.outer = wanted(c.ctx, c.name, c.settings), nil
			k, err = c.enterOuter()
		}
	}()
	e, outer := c.engine, find(c.ctx, func(k *Lock) bool { return k.lease.name.Lock() == c.name.Lock() })
	if outer == nil || c.settings.Resume || c.chosen != "" && c.chosen != outer.lease.owner {
		return nil, nil
	}
	if err := outer.usable(); err != nil {
		return nil, err
	}
	if c.ctx.Err() != nil {
		return nil, gaveUpError(c.ctx, c.name.Key())
	}
	s := outer.lease
	if !s.Form.Includes(c.settings.Form) {
		return nil, upgradeError(c.name.Key())
	}
	if s.engine == e {
		return c.reenter(outer)
	}
	// If that one uses this Redis, then the very lock it holds must still be there.
	c.chosen, c.outer = s.owner, s
	if err := s.join(nil); err != nil {
		return nil, err
	}
	if e.store.SharesRedis(s.engine.store) {
		c.form, c.enter = s.Form, s.redisToken
	}
	return nil, nil
}

// reenter adds a hold to a lock that the context holds. It joins the lease first, so
// that the outer handle's release does not stop the renewal meanwhile. ErrNotHeld: it came first.
func (c *lockCall) reenter(outer *Lock) (*Lock, error) {
	e, s := c.engine, outer.lease
	c.chosen, c.form, c.enter = s.owner, s.Form, s.redisToken
	claim := c.claimAlone()
	k := new(Lock)
	k.reentry = true
	k.open(c.ctx, c.group, s, claim.Hold, &claim.Resends)
	if err := s.join(&k.handle); err != nil {
		return nil, err
	}
	granted, err := e.store.Acquire(c.ctx, claim)
	if err == nil {
		s.mu.Lock()
		k.resends = e.store.LateCopies(claim)
		entered := s.life.Entered(schedule.Now(), &k.state, e.timesOf(granted.Sent, min(granted.Lease, s.Lease)))
		if err = s.follow(entered); err == nil {
			c.decided(claim, k)
			return k, nil
		}
		e.store.Withdraw(claim, s.Lease)
	} else if errors.Is(err, store.ErrGone) || errors.As(err, new(*store.Busy)) {
		err = s.notFound()
	} else if gone := s.check(); gone != nil {
		err = gone
	}
	c.decided(claim, nil)
	_, _ = s.leave(&k.handle)
	s.retire(true, nil)
	return nil, e.noAnswer(&c.want, err)
}

// try asks Redis once. It returns a lock, or who is in the way, or an error.
func (c *lockCall) try(w *waiter) (*Lock, *store.Busy, error) {
	e := c.engine
	if c.settings.Resume {
		return c.resume()
	}
	if w != nil {
		if q := w.Entry(e.entryFor); q != nil {
			claim := c.claim(q.Hold, e.waiting(q, c.name))
			granted, err := e.store.Acquire(c.ctx, claim)
			e.answered(q, claim, granted, err)
			return c.conclude(claim, granted, err)
		}
	}
	return c.ask(c.claimAlone())
}

// claimAlone is a claim without an entry in the queue.
func (c *lockCall) claimAlone() *store.Claim {
	return c.claim(c.engine.store.NewHold(), store.NotWaiting)
}

func (c *lockCall) ask(claim *store.Claim) (*Lock, *store.Busy, error) {
	granted, err := c.engine.store.Acquire(c.ctx, claim)
	return c.conclude(claim, granted, err)
}

// resume takes the lock by the ticket of the call.
func (c *lockCall) resume() (*Lock, *store.Busy, error) {
	claim := c.claimAlone()
	claim.Ticket = c.settings.Ticket
	return c.ask(claim)
}

// conclude takes the answer to a claim. A lock that was handed over to the call it takes by its ticket.
func (c *lockCall) conclude(claim *store.Claim, granted store.Grant, err error) (*Lock, *store.Busy, error) {
	if err == nil {
		k, err := c.accept(claim, granted)
		c.decided(claim, k)
		return k, nil, err
	}
	c.decided(claim, nil)
	busy := (*store.Busy)(nil)
	if !errors.As(err, &busy) {
		return nil, nil, c.engine.requestError(&c.want, claim, err)
	}
	if busy.HandedOver && c.settings.Ticket != "" && claim.Ticket == "" {
		if k, _, _ := c.resume(); k != nil {
			return k, nil, nil
		}
	}
	return nil, busy, nil
}

// decided lets members of a quorum that grant a claim late know what became of it: a lock, or nothing.
func (c *lockCall) decided(claim *store.Claim, k *Lock) {
	c.engine.store.Decided(claim, (*decidedLock)(k))
}

type decidedLock Lock

// Held says whether there is a lock, and it is held.
func (k *decidedLock) Held() bool { return k != nil && (*Lock)(k).held() }

// accept turns what Redis granted into a lock, unless it comes too late.
func (c *lockCall) accept(claim *store.Claim, r store.Grant) (*Lock, error) {
	e := c.engine
	g := grant{
		acquisition: acquisition{Terms: r.Terms, owner: claim.Owner, redisToken: r.Token, ahead: r.Ahead, attempt: int32(r.Attempt)},
		Times:       e.timesOf(r.Sent, min(r.Lease, r.TTL)), // a fixed lease that was entered from elsewhere has run for a while
		token:       r.Token, hold: claim.Hold, resends: e.store.LateCopies(claim),
	}
	if r.Fixed {
		g.RenewAt = 0
	}
	overdueAt := c.overdueAt()
	if outer := c.outer; outer != nil && !r.Outermost {
		g.Window, overdueAt = outer.Window, outer.life.OverdueAt()
		if r.Token == outer.redisToken {
			g.token = outer.token // handed off, it has one that Redis does not know
		}
	}
	k := c.open(g, overdueAt)
	s := k.lease
	if !c.owner().Usual() || s.Form.Stays() {
		s.shared.Store(true)
	}
	var err error
	if c.ctx.Err() != nil {
		err = gaveUpError(c.ctx, c.name.Key())
	} else {
		err = c.begin(s)
	}
	if err != nil {
		k.under.end(err)
		e.store.Withdraw(claim, s.Lease)
		return nil, err
	}
	return k, nil
}

// receive turns what a release has granted, or what was handed off, into a lock, unless it comes too late.
func (c *lockCall) receive(g grant) (*Lock, error) {
	k := c.open(g, c.overdueAt())
	if err := c.begin(k.lease); err != nil {
		k.under.end(err)
		k.lease.giveBack(&k.handle, true)
		return nil, err
	}
	return k, nil
}

// overdueAt is when the call will have held for too long what it gets now; 0: never.
func (c *lockCall) overdueAt() schedule.Time {
	if c.settings.MaxHold <= 0 {
		return 0
	}
	return schedule.Now().Add(c.settings.MaxHold)
}

// open makes the lease of a lock that the call has got just now, with its first handle.
func (c *lockCall) open(g grant, overdueAt schedule.Time) *Lock {
	h := c.room
	if c.room = nil; h == nil {
		h = new(held)
	}
	s, k := &h.lease, &h.first
	s.acquisition, s.engine, s.name, s.token, s.since = g.acquisition, c.engine, c.name, g.token, schedule.Now()
	s.life = life.New(&k.state, g.Times, overdueAt)
	switch {
	case s.shared != nil: // handed off
	case c.group != nil:
		s.shared = &c.group.shared
	default:
		s.shared = &s.alone
	}
	if s.heldSince == 0 {
		s.heldSince = s.since
	}
	k.open(c.ctx, c.group, s, g.hold, g.resends)
	s.handles = &k.handle
	return k
}

// begin starts a lease that has not ended yet.
func (c *lockCall) begin(s *lease) error {
	switch key := c.name.Key(); {
	case s.since >= s.life.Times().Ends:
		return unavailableError("taking", key, fmt.Errorf("%w of %v", errLateGrant, s.Lease))
	case !s.begin():
		return closedError("taking", key)
	}
	return nil
}
