package core

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Observer hears what becomes of locks, for metrics and traces, as promlock and otellock do.
//
// Observe is called at once, from many goroutines, and holds up the one that has the news: it must not
// block, nor take or release locks. A panic is caught and logged.
//
// The context is that of the call that wants the lock, and, once it is acquired, [Lock.Context], which
// may be done already; events that belong to no call have one without values. Observe returns it, one
// that descends from it, or nil for it: what it returns for [EventWaiting] it gets with the outcome,
// and what it returns for [EventAcquired] becomes Lock.Context, for the handler to see. For other
// events the result is not used.
type Observer interface {
	Observe(ctx context.Context, e Event) context.Context
}

// Observe has o told of all locks of the Locker. Given more than once, each of them is told, in
// that order. Option of [New] and [NewQuorum] only.
func Observe(o Observer) Option {
	if o == nil {
		return badOption("Observe: the Observer is nil")
	}
	return ofNew("Observe", func(s *settings) { s.observers = append(s.observers, o) })
}

// Name is what Observers call a lock, such as "orders": one word for all keys of a kind, never from a
// request, for it labels metrics. The default is empty; middleware has the name of its parameter.
// Bytes that are not UTF-8 are replaced.
func Name(name string) Option {
	name = strings.ToValidUTF8(name, "\uFFFD")
	return Option{set: func(s *settings) { s.Name = name }}
}

// EventKind says what an [Event] tells.
type EventKind int

const (
	// EventWaiting: a call wants a lock. One of the next three follows.
	EventWaiting EventKind = iota + 1
	// EventAcquired: the call has the lock. Unless it is a Reentry, EventReleased or EventLost follows.
	EventAcquired
	// EventBusy: the call was refused because somebody else holds the lock. Reason is "no_wait",
	// "wait_over", "max_waiters", "order" (see [Locker.LockAll]) or "deadlock"; "canceled" or "deadline"
	// when its context ended first; or "answered" when it gets the result of an earlier run of [Once],
	// or the answer of an earlier attempt at the same request.
	EventBusy
	// EventFailed: the call failed. Reason is "unavailable", "closed", "lost", "max_hold", "invalid_key",
	// "upgrade", "ticket" or "outcome_unknown", after the error of that name; or, for an attempt at an
	// idempotent request, "reused".
	EventFailed
	// EventReleased: the last of the lock's holds was unlocked, or handed over. When Redis has not
	// confirmed it, Reason is "unconfirmed" and Err is [ErrUnavailable].
	EventReleased
	// EventLost: the protection ended before the lock was unlocked. Reason is "deleted" when it was gone
	// before its lease was over, "expired" when the lease was over, "max_hold" when that was because of
	// [MaxHold], and "closed" when [Locker.Close] took the lock away.
	EventLost
	// EventOverdue: the lock is held longer than [MaxHold] permits.
	EventOverdue
	// EventRenewalFailed: the watchdog could not renew the lease, and tries again.
	EventRenewalFailed
	// EventRefused: middleware refused a request or task. Reason is one of EventBusy's or EventFailed's,
	// or "setup" when the middleware is set up wrongly.
	EventRefused

	// The rest is of no call, and has no Name; the first two have no Key either.

	// EventGrantMissed: the message about a lock that Redis has granted to a waiting call of this process
	// came late or never. The lock lay idle, for a second at most.
	EventGrantMissed
	// EventUnheard: messages from Redis do not arrive, so waiting calls poll. It comes again with each
	// attempt to subscribe that fails.
	EventUnheard
	// EventCompensating: what became of a command in Redis is unknown, so it is undone until Redis
	// confirms that. EventCompensated follows.
	EventCompensating
	// EventCompensated: Redis has confirmed it, or the lock has ended by itself.
	EventCompensated
)

// Event is something that happened to a lock. Fields that do not belong to its Kind are zero; "to"
// and "from" are in the order of the kinds. Kind, Name, Form, Reason, Reentry and Status take few
// values and may label a metric; Key and Err take any number of them, and may hold personal data.
type Event struct {
	Kind    EventKind
	Name    string        // as [Name] or the middleware said, empty if neither did
	Key     string        // as the caller wrote it; not of EventRefused
	Keys    int           // that the call wants, each with events of its own; to EventFailed
	Form    string        // "exclusive", "shared" or "permits"; to EventRefused
	Reentry bool          // the context holds this lock already; of EventAcquired
	Reason  string        // a fixed word, where Kind has some
	Status  int           // of the HTTP answer, 0 for a task; of EventRefused
	Waited  time.Duration // for its outcome; from EventAcquired to EventFailed
	HeldFor time.Duration // since Lock has returned; from EventReleased to EventRenewalFailed
	Err     error         // what went wrong, if anything did
}

// reasons are the words for errors.
var reasons = []struct {
	err  error
	word string
}{
	{ErrMaxHold, "max_hold"}, {ErrLost, "lost"}, {ErrClosed, "closed"}, {ErrInvalidKey, "invalid_key"}, {ErrUpgrade, "upgrade"},
	{ErrTicket, "ticket"}, {store.ErrReused, "reused"}, {store.ErrOutcomeUnknown, "outcome_unknown"},
}

// kindOf is how Observers hear of an error of Lock.
func kindOf(err error) (kind EventKind, reason string) {
	var b *BusyError
	switch {
	case errors.As(err, &b):
		return EventBusy, string(cmp.Or(b.refused, waitOver)) // an adapter may have made it
	case errors.Is(err, ErrNotAcquired) && errors.Is(err, context.Canceled):
		return EventBusy, "canceled"
	case errors.Is(err, ErrNotAcquired):
		return EventBusy, "deadline"
	case errors.As(err, new(*store.Answered)):
		return EventBusy, "answered"
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return EventFailed, r.word
		}
	}
	return EventFailed, "unavailable"
}

type observers struct {
	list   []Observer
	report *report
}

func (all *observers) notify(ctx context.Context, event Event) context.Context {
	for _, o := range all.list {
		ctx = all.notifyOne(ctx, o, event)
	}
	return ctx
}

func (all *observers) notifyOne(ctx context.Context, o Observer, event Event) (result context.Context) {
	defer func() {
		if p := recover(); p != nil {
			all.report.problem(ctx, "an Observer panicked", "panic", p, "stack", string(debug.Stack()))
		}
		if result == nil {
			result = ctx
		}
	}()
	return o.Observe(ctx, event)
}

// observation is what Observers hear of a call, and then of its lease; nil: nobody hears of it.
type observation struct {
	observers   *observers
	ctx         context.Context // of the Observers
	event       Event           // what all events have in common
	since       time.Time       // the call waits, or the lock is held
	unconfirmed error           // of a release
}

// observe begins with a call that wants a lock, of so many. The call goes on with the context.
func (all *observers) observe(ctx context.Context, key string, keys int, name, form string) (context.Context, *observation) {
	if all.list == nil {
		return ctx, nil
	}
	o := &observation{observers: all, since: time.Now(), event: Event{Kind: EventWaiting, Name: name, Form: form, Key: key, Keys: keys}}
	o.ctx = all.notify(ctx, o.event)
	return o.ctx, o
}

func (o *observation) failed(err error) {
	if o == nil {
		return
	}
	event := o.event
	event.Kind, event.Reason = kindOf(err)
	event.Waited, event.Err = time.Since(o.since), err
	o.observers.notify(o.ctx, event)
}

// acquired goes on with a lock. It returns the context to work under, which begins as ctx.
func (o *observation) acquired(ctx context.Context, reentry bool) context.Context {
	if o == nil {
		return ctx
	}
	event := o.event
	event.Kind, event.Waited, event.Reentry = EventAcquired, time.Since(o.since), reentry
	o.ctx, o.since = o.observers.notify(ctx, event), time.Now()
	return o.ctx
}

func (o *observation) held(kind EventKind, reason string, err error) {
	if o == nil {
		return
	}
	event := o.event
	event.Kind, event.Keys, event.Reason, event.Err, event.HeldFor = kind, 0, reason, err, time.Since(o.since)
	o.observers.notify(o.ctx, event)
}

// released ends with a lease that its last handle has left.
func (o *observation) released() {
	if o != nil && o.unconfirmed != nil {
		o.held(EventReleased, "unconfirmed", o.unconfirmed)
		return
	}
	o.held(EventReleased, "", nil)
}

// reasonOfLoss is the word of [EventLost] for a lease that was lost so.
func reasonOfLoss(ended life.State, why error) string {
	_, reason := kindOf(why)
	switch {
	case reason != "lost":
		return reason
	case ended.IsTimeOver():
		return "expired"
	}
	return "deleted"
}
