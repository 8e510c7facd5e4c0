package core

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/acquire"
	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// reasons are the words for errors.
var reasons = []struct {
	err  error
	word string
}{
	{ErrMaxHold, "max_hold"}, {ErrLost, "lost"}, {ErrClosed, "closed"}, {ErrInvalidKey, "invalid_key"}, {ErrUpgrade, "upgrade"},
	{ErrOverloaded, "overloaded"}, {ErrTicket, "ticket"}, {store.ErrReused, "reused"}, {store.ErrOutcomeUnknown, "outcome_unknown"},
}

// kindOf is how Observers hear of an error of Lock.
func kindOf(err error) (kind EventKind, reason string) {
	var b *BusyError
	switch {
	case errors.As(err, &b):
		return EventBusy, string(cmp.Or(b.refused, acquire.WaitOver)) // an adapter may have made it
	case errors.Is(err, ErrNotAcquired) && errors.Is(err, context.Canceled):
		return EventBusy, "canceled"
	case errors.Is(err, ErrNotAcquired):
		return EventBusy, "deadline"
	case errors.As(err, new(*store.Answered)), errors.As(err, new(acquire.FailedRun)):
		return EventBusy, "answered"
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return EventFailed, r.word
		}
	}
	return EventFailed, "unavailable"
}

// maxEvents bounds the events that wait for Observers. There are no more than that before one has stood still for long.
const maxEvents = 1 << 17

type observers struct {
	list    []Observer
	backend *lease.Backend // for its log
	later   schedule.Queue
	loads   schedule.Queue // of their own: what calls have done waits for none of them
}

// notify notifies of an event that no call waits for.
func (all *observers) notify(ctx context.Context, event Event) {
	queue := &all.later
	if event.Kind == EventLoad {
		queue = &all.loads
	}
	if all.list != nil && !queue.Put(func() { all.notifyNow(ctx, event) }, maxEvents) {
		all.backend.Warn(ctx, "an Observer is too slow, and does not hear of all events", "key", event.Key)
	}
}

func (all *observers) notifyNow(ctx context.Context, event Event) context.Context {
	for _, o := range all.list {
		ctx = all.notifyOne(ctx, o, event)
	}
	return ctx
}

func (all *observers) notifyOne(ctx context.Context, o Observer, event Event) (result context.Context) {
	defer func() {
		if p := recover(); p != nil {
			all.backend.Problem(ctx, "an Observer panicked", "panic", p, "stack", string(debug.Stack()))
		}
		if result == nil {
			result = ctx
		}
	}()
	return o.Observe(ctx, event)
}

// GrantMissed, Compensating and Compensated notify of what is of no call.
func (all *observers) GrantMissed() { all.notify(context.Background(), Event{Kind: EventGrantMissed}) }
func (all *observers) Compensating(key string) {
	all.notify(context.Background(), Event{Kind: EventCompensating, Key: key})
}
func (all *observers) Compensated(key string) {
	all.notify(context.Background(), Event{Kind: EventCompensated, Key: key})
}

// observation is what Observers hear of a call, and then of its lease.
type observation struct {
	observers   *observers
	ctx         context.Context // of the Observers
	event       Event           // what all events have in common
	since       time.Time       // the call waits, or the lock is held
	unconfirmed error           // of a release
	mode        option.ReleaseMode
}

// Wants begins with a call that wants a lock, of so many. The call goes on with the context. Without Observers the observation is nil.
func (all *observers) Wants(ctx context.Context, key string, keys int, s *option.Settings) (context.Context, acquire.Observer) {
	if all.list == nil {
		return ctx, nil
	}
	o := &observation{
		observers: all, since: time.Now(), event: Event{Kind: EventWaiting, Name: s.Name, Form: s.Form.Label(), Key: key, Keys: keys},
	}
	o.ctx = all.notifyNow(ctx, o.event)
	return o.ctx, o
}

// Failed ends with a call that gets no lock.
func (o *observation) Failed(err error) {
	event := o.event
	event.Kind, event.Reason = kindOf(err)
	event.Waited, event.Err = time.Since(o.since), err
	o.observers.notifyNow(o.ctx, event)
}

// Acquired goes on with a lock. It returns the context to work under, which begins as ctx.
func (o *observation) Acquired(ctx context.Context, reentry bool) context.Context {
	event := o.event
	event.Kind, event.Waited, event.Reentry = EventAcquired, time.Since(o.since), reentry
	o.ctx, o.since = o.observers.notifyNow(ctx, event), time.Now()
	return o.ctx
}

func (o *observation) held(kind EventKind, reason string, err error) {
	event := o.event
	event.Kind, event.Keys, event.Reason, event.Err, event.HeldFor = kind, 0, reason, err, time.Since(o.since)
	if kind == EventReleased && o.mode == option.AwaitedRelease && o.observers.later.IsEmpty() {
		o.observers.notifyNow(o.ctx, event)
		return
	}
	o.observers.notify(o.ctx, event)
}

func (o *observation) Overdue(err error)             { o.held(EventOverdue, "", err) }
func (o *observation) Lost(reason string, err error) { o.held(EventLost, reason, err) }
func (o *observation) RenewalFailed(err error)       { o.held(EventRenewalFailed, "", err) }

func (o *observation) Releasing(mode option.ReleaseMode, unconfirmed error) {
	o.mode, o.unconfirmed = max(o.mode, mode), cmp.Or(unconfirmed, o.unconfirmed)
}

// Released ends with a lease that its last handle has left.
func (o *observation) Released() {
	if o.unconfirmed != nil {
		o.held(EventReleased, "unconfirmed", o.unconfirmed)
		return
	}
	o.held(EventReleased, "", nil)
}
