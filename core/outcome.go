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
	// busyFor is how long Redis may have failed when a wait ends, for the lock to be called busy all the same.
	busyFor = time.Second
)

// errLateGrant is why a lock that Redis granted is given back.
var errLateGrant = errors.New("the answer took longer than the lease")

// requestError is the error of a claim that Redis has refused, or that has failed.
func (e *engine) requestError(w *want, claim *store.Claim, err error) error {
	key := w.name.Key()
	gone := errors.Is(err, store.ErrGone)
	var answered *store.Answered
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
	default:
		return e.noAnswer(w, err)
	}
}

// noAnswer is the error of a request of which no answer came. It returns any other error as it is.
func (e *engine) noAnswer(w *want, err error) error {
	var failure *conn.Failure
	ended := w.ctx.Err()
	switch {
	case !errors.As(err, &failure): // a context's cause may be of any kind
		return err
	case errors.Is(ended, context.Canceled), ended != nil && errors.Is(err, ended) && !e.store.IsSilent(e.timeout):
		return gaveUpError(w.ctx, w.name.Key())
	default:
		return unavailableError("taking", w.name.Key(), err)
	}
}

// waitError is the error of a call whose wait has ended.
func (e *engine) waitError(w *want, why waitqueue.Reason, known waitqueue.State) error {
	key := w.name.Key()
	silent := !known.Silence.IsZero() && time.Since(known.Silence) >= busyFor || e.store.IsSilent(busyFor)
	switch {
	case why == waitqueue.Closing:
		return closedError("waiting for", key)
	case why == waitqueue.WaitOver && silent:
		return unavailableError("waiting for", key, conn.ErrNoAnswer)
	case why == waitqueue.WaitOver:
		return w.refuse(waitOver, known.Taken)
	case silent && errors.Is(w.ctx.Err(), context.DeadlineExceeded):
		return unavailableError("waiting for", key, conn.Ended(w.ctx))
	default:
		return gaveUpError(w.ctx, key)
	}
}

// askFailed takes the failure of a question that was asked then. It returns nil when the call goes on waiting, and
// otherwise the error with which it has left the queue.
func (c *queuedCall) askFailed(err error, asked time.Time) error {
	known := c.waiter.Silent(asked) // to all calls of the queue
	long := time.Since(known.Silence) >= maxSilence
	switch {
	case known.Answered && c.ctx.Err() != nil:
		err = c.engine.waitError(&c.want, waitqueue.ContextEnded, known)
	case known.Answered && errors.Is(err, ErrUnavailable) && !errors.Is(err, errLateGrant) && !conn.IsClosed(err) && !long:
		return nil
	}
	var network net.Error
	if noAnswer := errors.Is(err, conn.ErrNoAnswer) || errors.As(err, &network) || errors.Is(err, io.EOF); long && noAnswer {
		c.leaveQueue(c.waiter.Dismiss(err))
		return err
	}
	return c.leave(err) // it may have failed for a reason of its own: the others try for themselves
}

// refuse makes the error for a lock that is busy, as far as is known.
func (w *want) refuse(refused refusal, by waitqueue.Taken) error {
	after := time.Until(by.Until)
	over := by.Done && after <= 0 // Redis has not said anything since
	if !by.Exact && after > time.Second || by.Until.IsZero() {
		after = time.Second
	}
	b := &BusyError{Key: w.name.Key(), RetryAfter: max(after, time.Millisecond), Done: by.Done && !over, refused: refused, over: over}
	if w.settings.Wait != nil {
		b.wait = *w.settings.Wait
	}
	return b
}

func taken(b *store.Busy) waitqueue.Taken {
	return waitqueue.Taken{Until: b.Until, Exact: b.Exact, Done: b.Done}
}

var errNoPermit = errors.Join(ErrNotAcquired, ErrNoPermit)

// ofForm has the refusal of a call with Permits say so. The refusal is that of no other call.
func ofForm(form store.Form, err error) error {
	if err == nil || !form.NeedsPermit() {
		return err
	}
	switch e := err.(type) {
	case *BusyError:
		e.permits = true
	case *LockError:
		if e.kind == ErrNotAcquired {
			e.kind = errNoPermit
		}
	}
	return err
}

// gaveUpError is the refusal of a caller whose context ended first.
func gaveUpError(ctx context.Context, key string) error {
	return &LockError{Key: key, kind: ErrNotAcquired, text: "lock not acquired", shown: ctx.Err(), cause: conn.Ended(ctx)}
}

// endedWhile is the error of a request that does no harm when its outcome is unknown: the
// caller's context ended first, for that cause.
func endedWhile(ctx context.Context, doing, key string, cause error) error {
	return &LockError{Key: key, text: doing + " the lock", shown: ctx.Err(), cause: cause}
}

func unavailableError(doing, key string, cause error) error {
	return &LockError{Key: key, kind: ErrUnavailable, text: doing + " the lock: redis unavailable", cause: cause}
}

func lostError(key, reason string, cause error) error {
	return &LockError{Key: key, kind: ErrLost, text: "lock lost: " + reason, cause: cause}
}

func upgradeError(key string) error {
	return &LockError{
		Key: key, kind: ErrUpgrade,
		text: "this context or owner already has the lock, shared or by permit; release it before taking it in another form",
	}
}

func notHeldError(key string) error {
	return &LockError{Key: key, kind: ErrNotHeld, text: "the lock was unlocked before"}
}

func maxHoldError(key string) error {
	return &LockError{Key: key, kind: ErrMaxHold, text: "lock held for too long"}
}

func closedError(doing, key string) error {
	return &LockError{Key: key, kind: ErrClosed, text: doing + " the lock: locker closed"}
}

func cannotHandOver(key, why string) error {
	return &LockError{Key: key, kind: ErrNotHeld, text: "the lock cannot be handed over: " + why}
}

func noTicket(key string) error {
	return &LockError{Key: key, kind: ErrTicket, text: "there is no lock for the ticket"}
}

// unanswered is the error of a request that does no harm when its outcome is unknown.
func unanswered(ctx context.Context, doing, key string, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return endedWhile(ctx, doing, key, err)
	}
	return unavailableError(doing, key, err)
}
