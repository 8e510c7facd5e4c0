package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/acquire"
	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// errorsOf makes the errors of what the rooms of core say has happened.
type errorsOf struct{}

func (errorsOf) Unavailable(doing, key string, cause error) error {
	if overloaded := (*conn.Overloaded)(nil); errors.As(cause, &overloaded) {
		return &LockError{
			Key: key, RetryAfter: overloaded.After, kind: ErrOverloaded, text: doing + " the lock", shown: overloaded, cause: cause,
		}
	}
	return &LockError{Key: key, kind: ErrUnavailable, text: doing + " the lock: redis unavailable", cause: cause}
}

func (e errorsOf) Unanswered(ctx context.Context, doing, key string, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return &LockError{Key: key, text: doing + " the lock", shown: ctx.Err(), cause: err}
	}
	return e.Unavailable(doing, key, err)
}

func (e errorsOf) Lost(key string, ended life.State) error {
	reason, cause := "it could not be renewed in time", error(nil)
	switch ended {
	case life.Deleted:
		reason = "it was deleted, or somebody else has taken it"
	case life.FixedOver:
		reason = "its fixed lease is over"
	case life.HeldTooLong:
		reason, cause = "its last lease is over", ErrMaxHold
	case life.HandoverTooLong:
		reason = "handing it over took too long"
	case life.BeingHandedOver, life.HandedOverByTicket:
		reason = "it is being handed over"
	case life.Closed:
		return e.Closed("holding", key)
	}
	return &LockError{Key: key, kind: ErrLost, text: "lock lost: " + reason, cause: cause}
}

func (errorsOf) IsLost(err error) bool { return errors.Is(err, ErrLost) }

func (errorsOf) Upgrade(key string) error {
	return &LockError{
		Key: key, kind: ErrUpgrade,
		text: "this context or owner already has the lock, shared or by permit; release it before taking it in another form",
	}
}

func (errorsOf) NotHeld(key string) error {
	return &LockError{Key: key, kind: ErrNotHeld, text: "the lock was unlocked before"}
}

func (errorsOf) Overdue(key string) error {
	return &LockError{Key: key, kind: ErrMaxHold, text: "lock held for too long"}
}

func (errorsOf) Closed(doing, key string) error {
	return &LockError{Key: key, kind: ErrClosed, text: doing + " the lock: locker closed"}
}

func (errorsOf) HandedOver(key string) error {
	return &LockError{Key: key, kind: ErrHandedOver, text: "the lock was handed over"}
}

func (errorsOf) CannotBe(done, key, why string) error {
	return &LockError{Key: key, kind: ErrNotHeld, text: "the lock cannot be " + done + ": " + why}
}

func (errorsOf) NoTicket(key string) error {
	return &LockError{Key: key, kind: ErrTicket, text: "there is no lock for the ticket"}
}

func (errorsOf) InvalidKey(why string) error { return fmt.Errorf("%w: %s", ErrInvalidKey, why) }

func (errorsOf) TooManyKeys(n, most int) error {
	return fmt.Errorf("%w: LockAll was given %d, at most %d are allowed", ErrTooManyKeys, n, most)
}

func (errorsOf) Attempted(key string, outcome error) error {
	text := "nobody knows what the last attempt under the lock has done"
	switch {
	case errors.As(outcome, new(*store.Answered)):
		text = "the request of the lock was answered before"
	case errors.Is(outcome, store.ErrReused):
		text = "the lock is of another request"
	}
	return &LockError{Key: key, kind: outcome, text: text}
}

var errNoPermit = errors.Join(ErrNotAcquired, ErrNoPermit)

func (errorsOf) GaveUp(ctx context.Context, key string, wantsPermit bool) error {
	e := &LockError{Key: key, kind: ErrNotAcquired, text: "lock not acquired", shown: ctx.Err(), cause: conn.Ended(ctx)}
	if wantsPermit {
		e.kind = errNoPermit
	}
	return e
}

func (errorsOf) Busy(r acquire.Refusal) error {
	after := time.Until(r.Taken.Until)
	over := r.IsInWindow() && after <= 0 // Redis has not said anything since
	if !r.IsExact() && after > time.Second || r.Taken.Until.IsZero() {
		after = time.Second
	}
	return &BusyError{
		Key: r.Key, RetryAfter: max(after, time.Millisecond), Done: r.IsInWindow() && !over, HeldKeys: r.HeldKeys, Circle: r.Circle,
		refused: r.Why, over: over, permits: r.WantsPermit, wait: r.Wait,
	}
}
