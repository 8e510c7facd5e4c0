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

// notify tells the Observers of an event that only an adapter knows of.
func (l *Locker) notify(ctx context.Context, e Event, opts []Option) {
	if l.defaults.Observers == nil {
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
	l.tell(ctx, e)
}

// tell tells all Observers.
func (l *Locker) tell(ctx context.Context, e Event) context.Context {
	for _, o := range l.defaults.Observers {
		ctx = l.tellOne(ctx, o, e)
	}
	return ctx
}

func (l *Locker) tellOne(ctx context.Context, o Observer, e Event) (result context.Context) {
	defer func() {
		if p := recover(); p != nil {
			l.report.problem("an Observer panicked", "panic", p, "stack", string(debug.Stack()))
		}
		if result == nil {
			result = ctx
		}
	}()
	return o.Observe(ctx, e)
}

// tellWaiting tells of a call that wants a lock, of so many, and returns what tells of its
// outcome.
func (l *Locker) tellWaiting(ctx context.Context, key string, keys int, s *settings) (context.Context, func(*Lock, error)) {
	began := time.Now()
	e := Event{Kind: EventWaiting, Name: s.Name, Form: s.Form.String(), Key: key, Keys: keys}
	ctx = l.tell(ctx, e)
	return ctx, func(k *Lock, err error) {
		e.Waited = time.Since(began)
		if err != nil {
			e.Kind, e.Reason = refused(err)
			e.Err = err
			l.tell(ctx, e)
			return
		}
		e.Kind, e.Reentry = EventAcquired, k.reentry
		k.ctx = l.tell(k.ctx, e)
		if !e.Reentry {
			k.lease.observe(&observation{ctx: k.ctx, name: s.Name, form: e.Form, since: time.Now()})
		}
	}
}

// observation is what Observers have heard of a lease, from EventAcquired until it
// ends.
type observation struct {
	ctx        context.Context
	name, form string
	since      time.Time

	unconfirmed error // of a release
}

// observe begins an observation, and tells what has happened before it.
func (s *lease) observe(o *observation) {
	s.mu.Lock()
	s.observed = o
	loss, overdue := s.err, s.overdue
	s.mu.Unlock()
	if overdue {
		s.tell(o, Event{Kind: EventOverdue, Err: heldTooLong(s.name.Key())})
	}
	if loss != nil {
		s.tellLost(loss)
	}
}

// tellReleased ends the observation of a lease that its last handle has left.
func (s *lease) tellReleased() {
	o := s.unobserve()
	if o == nil {
		return
	}
	e := Event{Kind: EventReleased, Err: o.unconfirmed}
	if e.Err != nil {
		e.Reason = "unconfirmed"
	}
	s.tell(o, e)
}

// tellLost ends the observation of a lease that was lost.
func (s *lease) tellLost(why error) {
	o := s.unobserve()
	if o == nil {
		return
	}
	e := Event{Kind: EventLost, Err: why, Reason: "deleted"}
	switch {
	case errors.Is(why, ErrClosed):
		e.Reason = "closed"
	case errors.Is(why, ErrMaxHold):
		e.Reason = "max_hold"
	case s.expired:
		e.Reason = "expired"
	}
	s.tell(o, e)
}

func (s *lease) unobserve() *observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.observed
	s.observed = nil
	return o
}

// tell tells Observers what has become of a lease, if they have heard of it.
func (s *lease) tell(o *observation, e Event) {
	if o == nil {
		return
	}
	e.Name, e.Form, e.Key, e.HeldFor = o.name, o.form, s.name.Key(), time.Since(o.since)
	s.locker.tell(o.ctx, e)
}
