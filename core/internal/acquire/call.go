package acquire

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// call is one call that wants a lock.
type call struct {
	spec
	acquirer *Acquirer
	outer    *lease.Handle // of another Locker, which the context holds already; nil: it holds none
	group    *lease.Group
	memory   *lease.Memory // for the lock; nil: it has none yet
}

// gaveUp makes the error for a call whose context has ended first.
func (c *call) gaveUp() error {
	return c.acquirer.errors.GaveUp(c.ctx, c.name.Key(), c.settings.Form.NeedsPermit())
}

// spec is which lock a call wants, and how.
type spec struct {
	ctx      context.Context
	name     store.Name
	settings *option.Settings

	// As the settings say, until the context turns out to hold the lock: see aimAt.
	form   store.Form
	chosen string // the owner; empty: each hold brings its own
	enter  int64  // token of the lock to enter; 0: a free one will do
}

// specOf is what a call wants with what its options have given.
func specOf(ctx context.Context, name store.Name, given *option.Settings) spec {
	return spec{ctx: ctx, name: name, settings: given, form: given.Form, chosen: given.Owner.Chosen}
}

func (c *spec) terms() store.Terms {
	t := c.settings.Terms
	t.Form = c.form
	return t
}

func (c *spec) owner() store.Owner {
	return store.Owner{Chosen: c.chosen, Begin: c.settings.Owner.Begin}
}

func (c *spec) way() store.Way {
	switch {
	case c.enter != 0:
		return store.Way{Enter: c.enter}
	case c.settings.Resume:
		return store.Way{Ticket: c.settings.Ticket}
	}
	return store.Way{Attempt: c.settings.Attempt}
}

// claim is what the call asks Redis for by a hold.
func (c *spec) claim(hold string, wait store.WaitMode) store.Claim {
	return store.Claim{
		Holding: store.Holding{Name: c.name, Owner: c.owner().Of(hold), Hold: hold},
		Terms:   c.terms(), Way: c.way(), Wait: wait, Context: c.ctx,
	}
}

// waitsForEver says that nothing but the lock ends the wait in a day, as far as is known.
func (c *spec) waitsForEver() bool {
	until, bounded := c.ctx.Deadline()
	return (!bounded || time.Until(until) > option.LongestLease) && (c.settings.Wait == nil || *c.settings.Wait > option.LongestLease)
}
