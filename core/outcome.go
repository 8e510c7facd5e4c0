package core

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
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
//	a request that failed, the
//	call has not waited before    it gave up if its context has ended, otherwise unavailable
//	a request that failed, the
//	call has waited before        it goes on waiting    after maxSilence unavailable, for all that wait

// busyFor is how long Redis may have failed when a wait ends, for the lock to be called busy all the same.
const busyFor = time.Second

// requestError is the error of a claim that Redis has refused, or that got no answer. Any other error it returns as it is.
func (c *lockCall) requestError(claim *store.Claim, err error) error {
	key, ended := c.name.Key(), c.ctx.Err()
	gone := errors.Is(err, store.ErrGone)
	var answered *store.Answered
	var failure *conn.Failure
	switch {
	case gone && claim.Ticket != "":
		return noTicket(key)
	case errors.Is(err, store.ErrUpgrade):
		return upgradeError(key)
	case claim.Attempt == nil && gone:
		return lostError(key, "it was deleted, or somebody else has taken it", nil)
	case errors.As(err, &answered):
		return &LockError{Key: key, kind: answered, text: "the request of the lock was answered before"}
	case errors.Is(err, store.ErrReused):
		return &LockError{Key: key, kind: err, text: "the lock is of another request"}
	case errors.Is(err, store.ErrOutcomeUnknown):
		return &LockError{Key: key, kind: err, text: "nobody knows what the last attempt under the lock has done"}
	case !errors.As(err, &failure): // a context's cause may be of any kind
		return err
	case errors.Is(ended, context.Canceled), ended != nil && errors.Is(err, ended) && !c.engine.store.IsSilent(c.engine.timeout):
		return c.gaveUp()
	default:
		return unavailableError("taking", key, err)
	}
}

func (c *lockCall) waitError(why waitqueue.Reason, known waitqueue.State) error {
	key := c.name.Key()
	silent := !known.Silence.IsZero() && time.Since(known.Silence) >= busyFor || c.engine.store.IsSilent(busyFor)
	switch {
	case why == waitqueue.Closing:
		return closedError("waiting for", key)
	case why == waitqueue.WaitOver && silent:
		return unavailableError("waiting for", key, conn.ErrNoAnswer)
	case why == waitqueue.WaitOver:
		return c.refuse(waitOver, known.Taken)
	case silent && errors.Is(c.ctx.Err(), context.DeadlineExceeded):
		return unavailableError("waiting for", key, conn.Ended(c.ctx))
	default:
		return c.gaveUp()
	}
}

// refuse makes the error for a lock that is busy, as far as is known.
func (w *want) refuse(refused refusal, by waitqueue.Taken) error {
	after := time.Until(by.Until)
	over := by.Done && after <= 0 // Redis has not said anything since
	if !by.Exact && after > time.Second || by.Until.IsZero() {
		after = time.Second
	}
	b := &BusyError{
		Key: w.name.Key(), RetryAfter: max(after, time.Millisecond), Done: by.Done && !over,
		refused: refused, over: over, permits: w.settings.Form.NeedsPermit(),
	}
	if w.settings.Wait != nil {
		b.wait = *w.settings.Wait
	}
	return b
}

func takenOf(b *store.Busy) waitqueue.Taken {
	return waitqueue.Taken{Until: b.Until, Exact: b.Exact, Done: b.Done}
}
