package acquire

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// How a call ends that does not get the lock:
//
//	what ends it                  while Redis answers   while it is silent
//	its context, cancelled        it gave up            it gave up
//	its context, by a deadline    it gave up            unavailable
//	its Wait                      busy                  unavailable
//	Close                         closed                closed
//	a refusal by Redis            that refusal
//	a command that failed, the
//	call has not waited before    it gave up if its context has ended, otherwise unavailable
//	a command that failed, the
//	call has waited before        it goes on waiting    after maxSilence unavailable, for all that wait

// toleratedSilence is how long Redis may have failed when a wait ends, for the lock to be called busy all the same.
const toleratedSilence = time.Second

// claimError is the error of a claim that Redis has refused, or that got no answer. Any other error it returns as it is.
func (c *call) claimError(claim *store.Claim, err error) error {
	key, ended, errs := c.name.Key(), c.ctx.Err(), c.acquirer.errors
	gone := errors.Is(err, store.ErrGone)
	var answered *store.Answered
	switch {
	case gone && claim.Ticket != "":
		return errs.NoTicket(key)
	case errors.Is(err, store.ErrUpgrade):
		return errs.Upgrade(key)
	case claim.Attempt == nil && gone:
		return errs.Lost(key, life.Deleted)
	case errors.As(err, &answered):
		return errs.Attempted(key, answered)
	case errors.Is(err, store.ErrReused), errors.Is(err, store.ErrOutcomeUnknown):
		return errs.Attempted(key, err)
	case !errors.As(err, new(*conn.Failure)): // a context's cause may be of any kind
		return err
	case errors.Is(ended, context.Canceled), ended != nil && errors.Is(err, ended) && !c.acquirer.Store.IsSilent(c.acquirer.Timeout):
		return c.gaveUp()
	default:
		return errs.Unavailable("taking", key, err)
	}
}

func (c *call) waitError(why waitqueue.News, known waitqueue.Known) error {
	const doing = "waiting for"
	key, errs := c.name.Key(), c.acquirer.errors
	silent := !known.Silence.IsZero() && time.Since(known.Silence) >= toleratedSilence || c.acquirer.Store.IsSilent(toleratedSilence)
	switch {
	case why == waitqueue.Closing:
		return errs.Closed(doing, key)
	case why == waitqueue.WaitOver && silent:
		return errs.Unavailable(doing, key, cmp.Or(known.Failure, conn.ErrNoAnswer))
	case why == waitqueue.WaitOver:
		return c.refuse(WaitOver, known.Taken)
	case silent && errors.Is(c.ctx.Err(), context.DeadlineExceeded):
		return errs.Unavailable(doing, key, errors.Join(conn.Ended(c.ctx), known.Failure))
	default:
		return c.gaveUp()
	}
}

// refuse makes the error for a lock that is busy, as far as is known.
func (c *call) refuse(why Reason, taken waitqueue.Taken) error {
	r := c.refusal(why)
	r.Taken = taken
	return c.acquirer.errors.Busy(r)
}

// refusal is what is known of the call.
func (c *call) refusal(why Reason) Refusal {
	r := Refusal{Key: c.name.Key(), Why: why, WantsPermit: c.settings.Form.NeedsPermit()}
	if c.settings.Wait != nil {
		r.Wait = *c.settings.Wait
	}
	if c.settings.Waits() {
		r.HeldKeys = c.asNestedWait().keys()
	}
	return r
}

func takenOf(b *store.Busy) waitqueue.Taken {
	by := waitqueue.Holder
	switch b.Why {
	case store.HolderIsFixed:
		by = waitqueue.FixedHolder
	case store.InDedupWindow:
		by = waitqueue.DedupWindow
	case store.HolderIsForeign:
		by = waitqueue.Foreigner
	}
	return waitqueue.Taken{Until: b.Until, By: by}
}
