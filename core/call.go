package core

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/core/internal/conn"
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
	switch {
	case w.enter != 0:
		return store.Way{Enter: w.enter}
	case w.settings.Resume:
		return store.Way{Ticket: w.settings.Ticket}
	}
	return store.Way{Attempt: w.settings.Attempt}
}

// claim is what the call asks Redis for by a hold.
func (w *want) claim(hold string, wait store.Waiting) store.Claim {
	return store.Claim{
		Holding: store.Holding{Name: w.name, Owner: w.owner().Of(hold), Hold: hold},
		Terms:   w.terms(), Way: w.way(), Wait: wait, Context: w.ctx,
	}
}

var errNoPermit = errors.Join(ErrNotAcquired, ErrNoPermit)

// gaveUp makes the error for a call whose context has ended first.
func (w *want) gaveUp() error {
	e := &LockError{Key: w.name.Key(), kind: ErrNotAcquired, text: "lock not acquired", shown: w.ctx.Err(), cause: conn.Ended(w.ctx)}
	if w.settings.Form.NeedsPermit() {
		e.kind = errNoPermit
	}
	return e
}

type lockCall struct {
	want
	engine *engine
	outer  *lease // of another Locker, which the context holds already; nil: it holds none
	group  *group
	memory *lockMemory // for the lock, of that for all locks of a call; nil: it has memory of its own
}

// errNotEntered is why a call has entered no lock: its context holds none of that name by its Locker.
var errNotEntered = errors.New("the context does not hold the lock by this Locker")

// decidedLock is what became of a claim, for members of a quorum that grant it late: a lock, or nothing.
type decidedLock Lock

// Held says whether there is a lock, and it is held.
func (k *decidedLock) Held() bool { return k != nil && (*Lock)(k).held() }
