package core

import (
	"context"
	"errors"
	"io"
	"net"
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

const (
	// maxSilence is how long a waiting call endures that Redis fails.
	maxSilence = 5 * time.Second
	// busyFor is how long Redis may have failed when a wait ends, for the lock to be called
	// busy all the same.
	busyFor = time.Second
)

// errLateGrant is why a lock that Redis granted is given back.
var errLateGrant = errors.New("the answer took longer than the lease")

// refused is the error of a request that Redis has refused, or that has failed.
func (c *call) refused(claim *store.Claim, err error) error {
	key := c.name.Key()
	gone := errors.Is(err, store.ErrGone)
	var answered *store.Answered
	switch {
	case gone && claim.Ticket != "":
		return noTicket(key)
	case errors.Is(err, store.ErrUpgrade):
		return upgrade(key)
	case claim.Attempt == nil && gone:
		return lost(key, "it was deleted, or somebody else has taken it", nil)
	case errors.As(err, &answered):
		return &LockError{Key: key, kind: answered, text: "the request of the lock was answered before"}
	case errors.Is(err, store.ErrReused):
		return &LockError{Key: key, kind: err, text: "the lock is of another request"}
	case errors.Is(err, store.ErrOutcomeUnknown):
		return &LockError{Key: key, kind: err, text: "nobody knows what the last attempt under the lock has done"}
	default:
		return c.failed(err)
	}
}

// failed is the error of a request of which no answer came. Another error it returns as it is.
func (c *call) failed(err error) error {
	var failure *conn.Failure
	ended := c.ctx.Err()
	switch {
	case !errors.As(err, &failure): // a context's cause may be of any kind
		return err
	case errors.Is(ended, context.Canceled), ended != nil && errors.Is(err, ended) && !c.engine.store.IsSilent(c.engine.timeout):
		return gaveUp(c.ctx, c.name.Key())
	default:
		return unavailable("taking", c.name.Key(), err)
	}
}

// waitEnded is the error of a call whose wait has ended by itself.
func (c *call) waitEnded(by waitqueue.Ended, known waitqueue.State) error {
	key := c.name.Key()
	silent := !known.Silence.IsZero() && time.Since(known.Silence) >= busyFor || c.engine.store.IsSilent(busyFor)
	switch {
	case by == waitqueue.Closing:
		return closed("waiting for", key)
	case by == waitqueue.Over && silent:
		return unavailable("waiting for", key, conn.ErrNoAnswer)
	case by == waitqueue.Over:
		return c.refuse(waitOver, known.Taken)
	case silent && errors.Is(c.ctx.Err(), context.DeadlineExceeded):
		return unavailable("waiting for", key, conn.Ended(c.ctx))
	default:
		return gaveUp(c.ctx, key)
	}
}

// requestFailed is what a request that has failed with err means for a call that waits: nil if it goes
// on. forAll says that it means the same for the calls that wait behind.
func (c *call) requestFailed(known waitqueue.State, err error) (final error, forAll bool) {
	long := time.Since(known.Silence) >= maxSilence
	switch {
	case known.Answered && c.ctx.Err() != nil:
		err = c.waitEnded(waitqueue.Done, known)
	case known.Answered && errors.Is(err, ErrUnavailable) && !errors.Is(err, errLateGrant) && !conn.IsClosed(err) && !long:
		return nil, false
	}
	var network net.Error
	noAnswer := errors.Is(err, conn.ErrNoAnswer) || errors.As(err, &network) || errors.Is(err, io.EOF)
	return err, long && noAnswer
}

// refuse makes the error for a lock that is busy, as far as is known.
func (c *call) refuse(refused refusal, by waitqueue.Taken) error {
	after := time.Until(by.Until)
	over := by.Done && after <= 0 // Redis has not said anything since
	if !by.Exact && after > time.Second || by.Until.IsZero() {
		after = time.Second
	}
	e := &BusyError{Key: c.name.Key(), RetryAfter: max(after, time.Millisecond), Done: by.Done && !over, refused: refused, over: over}
	if c.settings.Wait != nil {
		e.wait = *c.settings.Wait
	}
	return e
}

func taken(b *store.Busy) waitqueue.Taken {
	return waitqueue.Taken{Until: b.Until, Exact: b.Exact, Done: b.Done}
}

// unanswered is the error of a request that does no harm when its outcome is unknown.
func unanswered(ctx context.Context, doing, key string, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return endedWhile(ctx, doing, key, err)
	}
	return unavailable(doing, key, err)
}
