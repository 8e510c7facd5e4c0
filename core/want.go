package core

import (
	"context"
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
		Terms:   w.terms(), Way: w.way(), Wait: wait,
	}
}
