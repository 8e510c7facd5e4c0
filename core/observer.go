package core

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Observer hears what becomes of locks, for metrics and traces. Packages promlock
// and otellock have one each.
//
// Observe is called at once, on the goroutine that has the news, and holds it up:
// it must not block, nor take or release locks. It is called from many goroutines.
// A panic is caught and logged.
//
// The context is that of the call that wants the lock, and, once it is acquired,
// [Lock.Context], which may be done already; events that belong to no call have a context of
// their own, without values. Observe returns it, or one that
// descends from it: what it returns for [EventWaiting] it gets with the outcome, and
// what it returns for [EventAcquired] becomes Lock.Context, so that a handler sees
// what the Observer has put there. For other events the result is not used. nil is
// the context that was given.
type Observer interface {
	Observe(ctx context.Context, e Event) context.Context
}

// EventKind says what an [Event] tells.
type EventKind int

const (
	// EventWaiting: a call wants a lock. One of the next three follows, with the
	// context that the Observer returned for it.
	EventWaiting EventKind = iota + 1
	// EventAcquired: the call has the lock. EventReleased or EventLost follows,
	// once, unless it is a Reentry.
	EventAcquired
	// EventBusy: the call was refused because somebody else holds the lock. Reason
	// is "no_wait", "wait_over", "max_waiters", "order" (see [Locker.LockAll]) or "deadlock", or
	// "canceled" or "deadline" when its context ended first. It is "answered" when an earlier
	// attempt at the same request has done the work, and the call gets its answer.
	EventBusy
	// EventFailed: the call failed. Reason is "unavailable", "closed", "lost",
	// "max_hold", "invalid_key", "upgrade" or "ticket", after the error of that name; or, for an
	// attempt at a request that counts once, "reused" or "outcome_unknown".
	EventFailed
	// EventReleased: the last of the lock's holds was unlocked, or handed over. Err is
	// [ErrUnavailable] when Redis has not confirmed it; Reason is "unconfirmed" then.
	EventReleased
	// EventLost: the protection ended before the lock was unlocked. Reason is
	// "deleted" when it was gone before its lease was over, "expired" when the lease
	// was over, "max_hold" when it was over because of [MaxHold], and "closed" when
	// [Locker.Close] took the lock away.
	EventLost
	// EventOverdue: the lock is held longer than [MaxHold] permits.
	EventOverdue
	// EventRenewalFailed: the watchdog could not renew the lease, and tries again.
	EventRenewalFailed
	// EventRefused: middleware refused a request or task. Reason is one of EventBusy's
	// or EventFailed's, or "setup" when the middleware is set up wrongly.
	EventRefused

	// EventGrantMissed: Redis has granted a lock to a waiting call of this process, and
	// the message about it came late or never. The lock lay idle meanwhile, for a second at
	// most. It has neither Name nor Key.
	EventGrantMissed
	// EventUnheard: messages from Redis do not arrive, so waiting calls poll. It comes again
	// with each attempt to subscribe that fails, and has neither Name nor Key.
	EventUnheard
	// EventCompensating: what became of a command in Redis is unknown, so it is undone
	// until Redis confirms that. EventCompensated follows. It has no Name.
	EventCompensating
	// EventCompensated: Redis has confirmed it, or the lock has ended by itself. It has no
	// Name.
	EventCompensated
)

// Event is something that happened to a lock. Fields that do not belong to its Kind
// are zero. Kind, Name, Form, Reason, Reentry and Status take few values and may label a
// metric; Key and Err take any number of them, and may hold personal data.
type Event struct {
	Kind EventKind
	// Name as [Name] or the middleware said, empty if neither did.
	Name string
	// Key as the caller wrote it; empty for EventRefused.
	Key string
	// Keys is how many keys the call wants: 1, or those of [Locker.LockAll], which has events
	// for each of them. Of EventWaiting, EventAcquired, EventBusy and EventFailed.
	Keys int
	// Form is how the call wants the lock, or has it: "exclusive", "shared" or "permits".
	// Empty from EventGrantMissed on.
	Form string
	// Reentry: the context holds this lock already. Of EventAcquired.
	Reentry bool
	// Reason is a fixed word, empty where Kind has none.
	Reason string
	// Status is the HTTP status of the answer, 0 for a task. Of EventRefused.
	Status int
	// Waited is how long the call has waited for its outcome. Of EventAcquired,
	// EventBusy and EventFailed.
	Waited time.Duration
	// HeldFor is how long the lock has been held, from Lock's return to Unlock's. Of
	// EventReleased, EventLost, EventOverdue and EventRenewalFailed.
	HeldFor time.Duration
	// Err is the error behind it. Of all but EventWaiting, EventAcquired,
	// EventGrantMissed, EventCompensating and EventCompensated.
	Err error
}

// refused is how Observers hear of an error of Lock.
func refused(err error) (kind EventKind, reason string) {
	var b *BusyError
	switch {
	case errors.As(err, &b):
		return EventBusy, [...]string{waitOver: "wait_over", notWaiting: "no_wait", tooManyWaiting: "max_waiters", circular: "deadlock", outOfOrder: "order"}[b.refused]
	case errors.Is(err, ErrNotAcquired) && errors.Is(err, context.Canceled):
		return EventBusy, "canceled"
	case errors.Is(err, ErrNotAcquired):
		return EventBusy, "deadline"
	case errors.Is(err, ErrLost):
		return EventFailed, "lost"
	case errors.Is(err, ErrMaxHold):
		return EventFailed, "max_hold"
	case errors.Is(err, ErrClosed):
		return EventFailed, "closed"
	case errors.Is(err, ErrInvalidKey):
		return EventFailed, "invalid_key"
	case errors.Is(err, ErrUpgrade):
		return EventFailed, "upgrade"
	case errors.Is(err, ErrTicket):
		return EventFailed, "ticket"
	case errors.As(err, new(*store.Answered)):
		return EventBusy, "answered"
	case errors.Is(err, store.ErrReused):
		return EventFailed, "reused"
	case errors.Is(err, store.ErrOutcomeUnknown):
		return EventFailed, "outcome_unknown"
	default:
		return EventFailed, "unavailable"
	}
}

// notifyFor notifies Observers of an event that only an adapter knows of.
func (l *Locker) notifyFor(ctx context.Context, e Event, opts []Option) {
	if l.observers == nil {
		return
	}
	s, err := l.settings(opts)
	if err != nil {
		return
	}
	if e.Name == "" {
		e.Name = s.Name
	}
	e.Form = s.Form.String()
	if e.Reason == "" && e.Err != nil {
		_, e.Reason = refused(e.Err)
	}
	l.notify(ctx, e)
}

// notify calls all Observers.
func (e *engine) notify(ctx context.Context, ev Event) context.Context {
	for _, o := range e.observers {
		ctx = e.notifyOne(ctx, o, ev)
	}
	return ctx
}

func (e *engine) notifyOne(ctx context.Context, o Observer, ev Event) (result context.Context) {
	defer func() {
		if p := recover(); p != nil {
			e.report.problem("an Observer panicked", "panic", p, "stack", string(debug.Stack()))
		}
		if result == nil {
			result = ctx
		}
	}()
	return o.Observe(ctx, ev)
}

// inquiry is what Observers have heard of a call that wants a lock; nil: there are none.
type inquiry struct {
	engine *engine
	ctx    context.Context // theirs
	event  Event
	began  time.Time
}

// wanted notifies of a call that wants a lock, of so many. It goes on with the context that it returns.
func (e *engine) wanted(ctx context.Context, key string, keys int, s *settings) (context.Context, *inquiry) {
	if e.observers == nil {
		return ctx, nil
	}
	i := &inquiry{engine: e, began: time.Now(), event: Event{Kind: EventWaiting, Name: s.Name, Form: s.Form.String(), Key: key, Keys: keys}}
	i.ctx = e.notify(ctx, i.event)
	return i.ctx, i
}

// refused notifies of an error.
func (i *inquiry) refused(err error) {
	if i == nil {
		return
	}
	ev := i.event
	ev.Kind, ev.Reason = refused(err)
	ev.Waited, ev.Err = time.Since(i.began), err
	i.engine.notify(i.ctx, ev)
}

// acquired notifies of a lock with that context. It returns the context to work under, and what to tell of its lease;
// nil of a re-entry.
func (i *inquiry) acquired(ctx context.Context, reentry bool) (context.Context, *observation) {
	if i == nil {
		return ctx, nil
	}
	ev := i.event
	ev.Kind, ev.Waited, ev.Reentry = EventAcquired, time.Since(i.began), reentry
	ctx = i.engine.notify(ctx, ev)
	if reentry {
		return ctx, nil
	}
	return ctx, &observation{engine: i.engine, ctx: ctx, since: time.Now(), event: Event{Name: ev.Name, Form: ev.Form, Key: ev.Key}}
}

// observation is what Observers have heard of a lease, from EventAcquired until it
// ends; nil: nothing.
type observation struct {
	engine *engine
	ctx    context.Context
	event  Event // what all have in common
	since  time.Time

	unconfirmed error // of a release
}

// notify notifies of an event of the lease.
func (o *observation) notify(kind EventKind, reason string, err error) {
	if o == nil {
		return
	}
	ev := o.event
	ev.Kind, ev.Reason, ev.Err, ev.HeldFor = kind, reason, err, time.Since(o.since)
	o.engine.notify(o.ctx, ev)
}

// released notifies of a lease that its last handle has left.
func (o *observation) released() {
	switch {
	case o == nil:
	case o.unconfirmed != nil:
		o.notify(EventReleased, "unconfirmed", o.unconfirmed)
	default:
		o.notify(EventReleased, "", nil)
	}
}

// lost notifies of a lease that was lost, when its time was over or before.
func (o *observation) lost(why error, expired bool) {
	reason := "deleted"
	switch {
	case o == nil:
		return
	case errors.Is(why, ErrClosed):
		reason = "closed"
	case errors.Is(why, ErrMaxHold):
		reason = "max_hold"
	case expired:
		reason = "expired"
	}
	o.notify(EventLost, reason, why)
}
