package core

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
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

// wanted is what a call with the settings wants.
func wanted(ctx context.Context, n store.Name, s *settings) want {
	return want{ctx: ctx, name: n, settings: s, form: s.Form, chosen: s.Owner.Chosen}
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

func (w *want) waits() bool { return w.settings.Waits() }

// waitsForEver says that nothing but the lock ends the wait in a day, as far as is known.
func (w *want) waitsForEver() bool {
	until, bounded := w.ctx.Deadline()
	return (!bounded || time.Until(until) > longestLease) && (w.settings.Wait == nil || *w.settings.Wait > longestLease)
}

// isAttempt says that the call is for an attempt at an idempotent request.
func (w *want) isAttempt() bool { return w.settings.Attempt != nil }

// isOrdinaryIn says that the call wants nothing of which Redis would have to know more than that form and the lease.
func (w *want) isOrdinaryIn(f store.Form) bool {
	return w.terms().OrdinaryIn(f) && w.owner().Usual() && w.way().Free()
}

// mayHandOff says that the call can have a lock of that form without asking Redis.
func (e *engine) mayHandOff(w *want, f store.Form) bool {
	return w.isOrdinaryIn(f) && !e.store.HandOffNeedsRedis()
}

// claim is what the call asks Redis for by a hold.
func (w *want) claim(hold string, wait store.Waiting) *store.Claim {
	return w.claimIn(new(store.Claim), hold, wait)
}

// claimIn is claim, in that place.
func (w *want) claimIn(c *store.Claim, hold string, wait store.Waiting) *store.Claim {
	*c = store.Claim{Holding: store.Holding{Name: w.name, Owner: w.owner().Of(hold), Hold: hold}, Terms: w.terms(), Way: w.way(), Wait: wait}
	return c
}

// grant is a lock that a call has got: by an answer of Redis, by a release anywhere that has
// granted it, or handed off in memory.
type grant struct {
	acquisition
	life.Times
	token   int64
	hold    string
	resends *conn.Resends // of the acquisition
}

// acquisition is what Redis knows of a lock. After a hand-off in memory it is that of the
// first holder.
type acquisition struct {
	store.Terms
	owner      string
	redisToken int64
	ahead      bool          // the token is ahead of the clock of Redis
	attempt    int32         // the number of that at an idempotent request; 0: it is for none
	heldSince  schedule.Time // by this process
	shared     *atomic.Bool  // others may have holds of the owner, in any lock that it has
}
