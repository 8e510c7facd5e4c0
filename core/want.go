package core

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
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

// waitsForEver says that nothing but the lock ends the wait in a day, as far as is known.
func (w *want) waitsForEver() bool {
	until, bounded := w.ctx.Deadline()
	return (!bounded || time.Until(until) > longestLease) && (w.settings.Wait == nil || *w.settings.Wait > longestLease)
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
func (w *want) claim(hold string, wait store.Waiting) *store.Claim {
	return w.claimIn(new(store.Claim), hold, wait)
}

// claimIn is claim, in that place.
func (w *want) claimIn(c *store.Claim, hold string, wait store.Waiting) *store.Claim {
	s := w.settings
	*c = store.Claim{
		Name: w.name, Owner: w.ownerOf(hold), Hold: hold, Wait: wait,
		Form: w.form, Lease: s.Lease, Fixed: s.Fixed, Window: s.KeepFor, Enter: w.enter,
	}
	if w.enter == 0 {
		c.Attempt = s.Attempt
	}
	return c
}

// grant is a lock that a call has got: by an answer of Redis, by a release anywhere that has
// granted it, or handed off in memory.
type grant struct {
	acquisition
	times
	token   int64
	hold    string
	resends *conn.Resends // of the acquisition
}

// acquisition is what Redis knows of a lock. After a hand-off in memory it is that of the
// first holder.
type acquisition struct {
	form       store.Form
	owner      string
	redisToken int64
	length     time.Duration
	fixed      bool          // nobody renews it
	ahead      bool          // the token is ahead of the clock of Redis
	resumed    bool          // by a ticket
	unrenewed  bool          // a release has granted it, and it was not renewed yet
	attempt    int32         // the number of that at an idempotent request; 0: it is for none
	heldSince  schedule.Time // by this process
	shared     *atomic.Bool  // others may have holds of the owner, in any lock that it has
}
