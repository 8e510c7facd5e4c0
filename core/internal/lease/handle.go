package lease

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Conditions are those of a call that has got a lock, beside the terms that Redis knows.
type Conditions struct {
	MaxHold    time.Duration // 0: it may be held for ever
	Outer      *Handle       // of another Locker, by which Redis counts the lock once more; nil: none
	MayLast    bool          // the log does not say that it is held for long
	OwnerKnown bool          // others may know the owner, and enter by it
	Group      *Group
	Memory     *Memory // for the lock; nil: it has none yet
}

// errAnswerTooLate is why a lock that Redis granted is given back.
var errAnswerTooLate = errors.New("the answer took longer than the lease")

// New makes the lease of a lock that a call has got just now, with its first handle, and starts its watchdog. It fails when the
// lease has ended by now, or the Locker closes: then the hold is to be compensated.
func New(ctx context.Context, r *Registry, g AcquiredLock, c Conditions) (h *Handle, err error) {
	const doing = "taking"
	h = r.newLease(ctx, g, c)
	switch s := h.lease; {
	case s.since >= s.life.Times().Ends:
		err = r.errors.Unavailable(doing, s.Name.Key(), fmt.Errorf("%w of %v", errAnswerTooLate, s.Lease))
	case !r.admit(s):
		err = r.errors.Closed(doing, s.Name.Key())
	default:
		s.mu.Lock()
		_ = s.applyAndUnlock(life.Effects{})
		return h, nil
	}
	h.under.end(err)
	return h, err
}

// newLease makes a lease with its first handle.
func (r *Registry) newLease(ctx context.Context, g AcquiredLock, c Conditions) *Handle {
	m := c.Memory
	if m == nil {
		m = new(Memory)
	}
	s, h := &m.lease, &m.first
	s.Acquisition, s.registry, s.first, s.since = g.Acquisition, r, h, schedule.Now()
	s.mayLast, s.ownerKnown = c.MayLast, c.OwnerKnown
	overdueAt := schedule.Time(0)
	if c.MaxHold > 0 {
		overdueAt = s.since.Add(c.MaxHold)
	}
	if c.Outer != nil {
		outer := c.Outer.lease
		s.Window, overdueAt = outer.Window, outer.life.OverdueAt()
		if s.RedisToken == outer.RedisToken {
			s.Token = outer.Token // handed off, it has one that Redis does not know
		}
	}
	s.life = life.New(&h.state, g.Times, overdueAt)
	if s.HeldSince == 0 {
		s.HeldSince = s.since
	}
	h.open(ctx, c.Group, s, g.Hold, g.Resends)
	s.handles = h
	return h
}

// open makes it a handle of a lease.
func (h *Handle) open(ctx context.Context, g *Group, s *lease, hold string, resends *conn.Resends) {
	h.lease, h.hold, h.resends, h.under.call = s, hold, resends, ctx
	h.outer, h.group, h.ctx = innermost(ctx), g, (*ownership)(h)
	if g != nil {
		h.under.set(g.Base, g.Cancel) // not ctx: of ten thousand locks each would ask the one before
	}
}

type ownershipKey struct{}

// ownership is a handle as the context that holds its lock, so that this costs no memory of its own.
type ownership Handle

func (o *ownership) Deadline() (time.Time, bool) { return o.under.call.Deadline() }
func (o *ownership) Done() <-chan struct{}       { return o.under.context(true).Done() }
func (o *ownership) Err() error                  { return o.under.err() }
func (o *ownership) String() string              { return fmt.Sprint(o.under.call, ".WithLock") }

func (o *ownership) Value(key any) any {
	if key == (ownershipKey{}) {
		return (*Handle)(o)
	}
	if o.group != nil {
		return o.under.call.Value(key) // those that Observers have added are between the locks
	}
	return o.under.context(false).Value(key)
}

// innermost returns the handle that a context was made for last, which may be unlocked by now, or nil.
func innermost(ctx context.Context) *Handle {
	v := ctx.Value(ownershipKey{})
	if v == nil { // what stands in a context of string keys is a core.Lock
		if lock, ok := ctx.Value(option.ContextKey).(interface{ Context() context.Context }); ok && !reflect.ValueOf(lock).IsNil() {
			v = lock.Context().Value(ownershipKey{})
		}
	}
	h, _ := v.(*Handle)
	return h
}

// Disown returns a context with the values and the cancellation of ctx that owns no lock.
func Disown(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownershipKey{}, (*Handle)(nil))
}

// Find returns the innermost handle that a context was made for and that matches, which may be unlocked by now, or nil.
func Find(ctx context.Context, match func(*Handle) bool) *Handle {
	h := innermost(ctx)
	for h != nil && !match(h) {
		h = h.outer
	}
	return h
}

// What a handle says of itself and its lease.

func (h *Handle) Context() context.Context { return h.ctx }
func (h *Handle) Group() *Group            { return h.group }

// Acquired is what was acquired. It is not to be changed. Its form is to be read by Form: a downgrade changes that.
func (h *Handle) Acquired() *Acquisition { return &h.lease.Acquisition }

// Form is how the lock is held now.
func (h *Handle) Form() store.Form {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	return h.lease.Form
}

// Backend is that of its Locker.
func (h *Handle) Backend() *Backend { return &h.lease.registry.Backend }

// Public is what callers have of the handle, made at the first time.
func (h *Handle) Public(make func(*Handle) any) any {
	h.under.mu.Lock()
	defer h.under.mu.Unlock()
	if h.public == nil {
		h.public = make(h)
	}
	return h.public
}

// Ends is when the lease ends if nothing renews it, or a little later.
func (h *Handle) Ends() time.Time {
	s := h.lease
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life.Times().Ends.Add(s.registry.Store.Margin(s.Lease)).Wall()
}

func (h *Handle) isIn(states ...life.HandleState) bool {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	return slices.Contains(states, h.state)
}

// Held says that the handle is not unlocked, nor being handed over.
func (h *Handle) Held() bool { return h.isIn(life.In) }

// MayBeHeld is Held, or says that the handle is being handed over: it may be held again in a moment.
func (h *Handle) MayBeHeld() bool { return h.isIn(life.In, life.HandingOver) }

// IsInTheWay says that the lock is held, and that nothing but its Unlock, or a loss, ends that.
func (h *Handle) IsInTheWay() bool {
	s := h.lease
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life.State() == life.Held && h.state == life.In
}

// Check returns why the handle cannot be used any more, or nil.
func (h *Handle) Check() error {
	if !h.Held() {
		return h.lease.registry.errors.NotHeld(h.lease.Name.Key())
	}
	return h.lease.check()
}

// Usable is Check of the lease alone, for what would prolong it.
func (h *Handle) Usable() error {
	s := h.lease
	s.mu.Lock()
	overdue, isHandedOver := s.life.IsOverdue(), h.state == life.HandedOver
	loss := s.applyAndUnlock(s.life.Check(schedule.Now()))
	switch {
	case isHandedOver: // it is not this handle's any more, whatever has become of the lease
		return nil
	case loss != nil || !overdue:
		return loss
	}
	return s.registry.errors.Overdue(h.lease.Name.Key())
}
