package core

import (
	"cmp"
	"context"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// want is which lock a call wants, and how.
type want struct {
	ctx      context.Context
	name     store.Name
	settings *settings
	form     store.Form
	owner    string // empty: a new one for each attempt
	enter    int64  // token of the lock to enter; 0: a free one will do
}

// ownerOf is the owner of a hold of the call: the one that it has chosen, if any.
func (w *want) ownerOf(hold string) string {
	return cmp.Or(w.owner, w.settings.OwnerBegin+hold)
}

func (w *want) waits() bool { return w.settings.Waits() }

// waitsForEver says that nothing but the lock ends the wait, as far as is known.
func (w *want) waitsForEver() bool {
	_, bounded := w.ctx.Deadline()
	return !bounded && w.settings.Wait == nil
}

// isPlain says that the owner is the one that a hold brings along.
func (w *want) isPlain() bool { return w.owner == "" && w.settings.OwnerBegin == "" }

// isAttempt says that the call is for an attempt at an idempotent request.
func (w *want) isAttempt() bool { return w.settings.Attempt != nil }

// isUsual says that the call wants nothing of which Redis would have to know more than the lease.
func (w *want) isUsual() bool {
	return w.isPlain() && !w.isAttempt() && !w.settings.Fixed && w.settings.KeepFor == 0
}

// claim is what the call asks Redis for by a hold.
func (w *want) claim(hold string, resends *conn.Resends, wait store.Waiting) store.Claim {
	s := w.settings
	c := store.Claim{
		Name: w.name, Owner: w.ownerOf(hold), Hold: hold, Resends: resends, Wait: wait,
		Form: w.form, Lease: s.Lease, Fixed: s.Fixed, Window: s.KeepFor, Enter: w.enter,
	}
	if w.enter == 0 {
		c.Attempt = s.Attempt
	}
	return c
}
