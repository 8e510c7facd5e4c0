package core

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"time"
)

// Observe has o told of all locks of the Locker. Given more than once, each of them
// is told, in that order. Without it nothing is measured. Option of [New] and
// [NewQuorum] only.
func Observe(o Observer) Option {
	return ofNew("Observe", func(s *settings) {
		if o == nil {
			s.Fail("Observe: the Observer is nil")
		}
		s.Observers = append(s.Observers, o)
	})
}

// Name is what Observers call a lock, such as "orders": one word for all keys of a
// kind, for it labels metrics. Never derive it from a request. The default is empty;
// middleware has the name of its parameter. Bytes that are not UTF-8 are replaced.
func Name(name string) Option {
	name = strings.ToValidUTF8(name, "\uFFFD")
	return Option{func(s *settings) { s.Name = name }}
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
