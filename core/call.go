package core

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// want is which lock a call wants, and how.
type want struct {
	ctx      context.Context
	name     store.Name
	settings *settings
	form     store.Form
	chosen   string // the owner; empty: each hold brings its own
	enter    int64  // token of the lock to enter; 0: a free one will do
}

// wanted is what a call wants with what its options have given.
func wanted(ctx context.Context, name store.Name, given *settings) want {
	return want{ctx: ctx, name: name, settings: given, form: given.Form, chosen: given.Owner.Chosen}
}

func (w *want) terms() store.Terms {
	t := w.settings.Terms
	t.Form = w.form
	return t
}

func (w *want) owner() store.Owner {
	return store.Owner{Chosen: w.chosen, Begin: w.settings.Owner.Begin}
}

func (w *want) way() store.Way {
	if w.enter != 0 {
		return store.Way{Enter: w.enter}
	}
	return store.Way{Attempt: w.settings.Attempt}
}

// waitsForEver says that nothing but the lock ends the wait in a day, as far as is known.
func (w *want) waitsForEver() bool {
	until, bounded := w.ctx.Deadline()
	return (!bounded || time.Until(until) > longestLease) && (w.settings.Wait == nil || *w.settings.Wait > longestLease)
}

// mayHandOff says that the call can have a lock of that form without asking Redis, which would have to know no more of it
// than the form and the lease.
func (e *engine) mayHandOff(w *want, f store.Form) bool {
	return w.terms().OrdinaryIn(f) && w.owner().Usual() && w.way().Free() && !e.store.HandOffNeedsRedis()
}

// claim is what the call asks Redis for by a hold.
func (w *want) claim(hold string, wait store.Waiting) store.Claim {
	return store.Claim{
		Holding: store.Holding{Name: w.name, Owner: w.owner().Of(hold), Hold: hold},
		Terms:   w.terms(), Way: w.way(), Wait: wait, Context: w.ctx,
	}
}

// lockCall is a call that wants a lock.
type lockCall struct {
	want
	engine *engine
	outer  *lease // of another Locker, which the context holds already; nil: it holds none
	group  *group
	memory *lockMemory // for the lock, of that for all locks of a call; nil: it has memory of its own
}

// askOnce asks Redis for the lock, for a call that does not wait in the queue. It returns what readAnswer does.
func (c *lockCall) askOnce() (*Lock, error) {
	if c.settings.Resume {
		return c.ask(c.settings.Ticket)
	}
	return c.ask("")
}

// ask asks Redis without an entry in the queue: for the lock that was handed over with the ticket, unless that is empty.
func (c *lockCall) ask(ticket string) (*Lock, error) {
	claim := c.claim(c.engine.store.NewHold(), store.NotWaiting)
	claim.Ticket = ticket
	granted, err := c.engine.store.Acquire(c.ctx, &claim)
	return c.readAnswer(&claim, granted, err)
}

// askAsHead is askOnce for the head of the queue of this process, by its entry in the queue of the lock, if it has one.
func (c *lockCall) askAsHead(w *waiter) (*Lock, error) {
	e := c.engine
	q := w.Entry(e.entryFor)
	if q == nil {
		return c.askOnce()
	}
	claim := c.claim(q.Hold, e.howToWait(q, c.name))
	granted, err := e.store.Acquire(c.ctx, &claim)
	e.entryAnswered(q, &claim, granted, err)
	return c.readAnswer(&claim, granted, err)
}

// readAnswer makes a lock of the answer to a claim, or the error of the call; while others have the lock that is a
// *store.Busy. A lock that was handed over to the call it takes by its ticket.
func (c *lockCall) readAnswer(claim *store.Claim, granted store.Grant, err error) (*Lock, error) {
	if err == nil {
		k, err := c.lockOfAnswer(claim, granted)
		c.decided(claim, k)
		return k, err
	}
	c.decided(claim, nil)
	var busy *store.Busy
	if !errors.As(err, &busy) {
		return nil, c.engine.requestError(&c.want, claim, err)
	}
	if busy.HandedOver && c.settings.Ticket != "" && claim.Ticket == "" {
		if k, err := c.ask(c.settings.Ticket); err == nil {
			return k, nil
		}
	}
	return nil, busy
}

// decided lets members of a quorum that grant a claim late know what became of it: a lock, or nothing.
func (c *lockCall) decided(claim *store.Claim, k *Lock) {
	c.engine.store.Decided(claim, (*decidedLock)(k))
}

type decidedLock Lock

// Held says whether there is a lock, and it is held.
func (k *decidedLock) Held() bool { return k != nil && (*Lock)(k).held() }
