package acquire

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// spec is which lock a call wants, and how.
type spec struct {
	ctx      context.Context
	name     store.Name
	settings *option.Settings

	// As the settings say, until the context turns out to hold the lock: see askToEnter.
	form   store.Form
	chosen string // the owner; empty: each hold brings its own
	enter  int64  // token of the lock to enter; 0: a free one will do
}

// specOf is what a call wants with what its options have given.
func specOf(ctx context.Context, name store.Name, given *option.Settings) spec {
	return spec{ctx: ctx, name: name, settings: given, form: given.Form, chosen: given.Owner.Chosen}
}

func (w *spec) terms() store.Terms {
	t := w.settings.Terms
	t.Form = w.form
	return t
}

func (w *spec) owner() store.Owner {
	return store.Owner{Chosen: w.chosen, Begin: w.settings.Owner.Begin}
}

func (w *spec) way() store.Way {
	switch {
	case w.enter != 0:
		return store.Way{Enter: w.enter}
	case w.settings.Resume:
		return store.Way{Ticket: w.settings.Ticket}
	}
	return store.Way{Attempt: w.settings.Attempt}
}

// claim is what the call asks Redis for by a hold.
func (w *spec) claim(hold string, wait store.Waiting) store.Claim {
	return store.Claim{
		Holding: store.Holding{Name: w.name, Owner: w.owner().Of(hold), Hold: hold},
		Terms:   w.terms(), Way: w.way(), Wait: wait, Context: w.ctx,
	}
}

// waitsForEver says that nothing but the lock ends the wait in a day, as far as is known.
func (w *spec) waitsForEver() bool {
	until, bounded := w.ctx.Deadline()
	return (!bounded || time.Until(until) > option.LongestLease) && (w.settings.Wait == nil || *w.settings.Wait > option.LongestLease)
}

// OnceDigest is in Redis what the digest of a request is for others, all of which are longer.
const OnceDigest = "6f6e6365"

// takesFailures says that the call is one of Once that ends with the error of a run for which it has waited.
func (w *spec) takesFailures() bool {
	a := w.settings.Attempt
	return a != nil && a.Request == OnceDigest && !w.settings.OwnFailures
}

// FailedRun is the error of another call's run, at a time, for calls that have waited for its result since before.
type FailedRun struct {
	Cause error
	at    time.Time
}

func (f FailedRun) Error() string { return f.Cause.Error() }
