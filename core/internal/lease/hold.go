package lease

import (
	"cmp"
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// How a hold of a lease begins, and what its holder does with it.

// join adds a handle that is about to re-enter; nil stands for one of another Locker, which only Redis
// counts. It does not when the lease is lost or being handed over, which the error says, or was released meanwhile.
func (s *lease) join(h *Handle) (joins bool, err error) {
	s.mu.Lock()
	var in *life.HandleState
	if h != nil {
		in = &h.state
	}
	joins, e := s.life.Join(schedule.Now(), in)
	switch {
	case joins && h == nil:
		s.ownerKnown = true
	case joins:
		h.next, s.handles, s.entered = s.handles, h, true
	}
	state := s.life.State()
	loss := s.applyAndUnlock(e)
	if !joins && loss == nil && (state == life.BeingHandedOver || state == life.HandedOverByTicket) {
		loss = s.registry.errors.Lost(s.Name.Key(), state)
	}
	return joins, loss
}

// Enter adds a hold of the lock by a claim to enter it, for a handle of its own. It joins the lease before it asks, so that the release of
// this handle does not stop the renewal meanwhile. It is nil, without an error, when the lock was unlocked first.
func (h *Handle) Enter(ctx context.Context, of *Group, claim *store.Claim) (*Handle, error) {
	s, locks, inner := h.lease, h.lease.registry.Store, &Handle{reentry: true}
	inner.open(ctx, of, s, claim.Hold, &claim.Resends)
	if joins, err := s.join(inner); !joins {
		return nil, err
	}
	granted, err := locks.Acquire(ctx, claim)
	if err == nil {
		s.mu.Lock()
		inner.resends = locks.LateCopies(claim)
		times := s.registry.TimesOf(granted.Sent, min(granted.Lease, s.Lease))
		if err = s.applyAndUnlock(s.life.Entered(schedule.Now(), &inner.state, times)); err == nil {
			claim.Decided(inner)
			return inner, nil
		}
		claim.CompensateAll(s.Lease)
	}
	claim.Decided(nil)
	loss := error(nil)
	if errors.Is(err, store.ErrGone) || errors.As(err, new(*store.Busy)) {
		loss, err = s.notFound(), nil
	} else {
		loss = s.check()
	}
	left, _, _ := inner.Leave()
	_ = left.Retire(Outcome{MayBeFree: true})
	return nil, cmp.Or(loss, err)
}

// EnterElsewhere says that another Locker enters the lock, which only Redis counts. It fails as Enter does.
func (h *Handle) EnterElsewhere() (enters bool, err error) { return h.lease.join(nil) }

// NotFound takes an answer of Redis, asked then, that it does not know the owner. It returns why the handle cannot be used any more; nil:
// Redis is to be asked again, which may have found the lock parked.
func (h *Handle) NotFound(asked schedule.Time) error {
	s := h.lease
	s.mu.Lock()
	wasParked := s.life.WasBeingHandedOver(asked)
	s.mu.Unlock()
	if wasParked {
		return nil
	}
	return cmp.Or(s.notFound(), s.registry.errors.NotHeld(s.Name.Key())) // it was released or handed off meanwhile
}

// Observe has an Observer hear that the lock was acquired, and of what becomes of the lease; nil: nobody hears. The handle has that
// context from now on, or what the Observer makes of it.
func (h *Handle) Observe(ctx context.Context, o Observer) {
	if h.ctx = ctx; o == nil {
		return
	}
	if h.ctx = o.Acquired(ctx, h.reentry); !h.reentry {
		h.lease.observe(o)
	}
}

// Refresh renews the lease now.
func (h *Handle) Refresh(ctx context.Context) error {
	if err := cmp.Or(h.Check(), h.Usable()); err != nil {
		return err
	}
	s := h.lease
	s.mu.Lock()
	renewal := s.renewal()
	s.refreshed = true
	s.mu.Unlock()
	held, sent, err := s.registry.Store.Refresh(ctx, renewal)
	if err != nil {
		return s.registry.errors.Unanswered(ctx, "refreshing", h.lease.Name.Key(), err)
	}
	s.mu.Lock()
	_ = s.applyAndUnlock(s.renewalEvent(held, nil, sent))
	return h.Check()
}

// ShareOwner returns the owner, which others may enter by from now on; "" after Unlock: another call may have the lock by then.
func (h *Handle) ShareOwner() string {
	s := h.lease
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := h.state; state != life.In && state != life.HandingOver {
		return ""
	}
	s.ownerKnown = true
	return s.Owner
}

// Attempt is the number of that at an idempotent request for which the lock was taken; 0: it is for none, or was entered.
func (h *Handle) Attempt() int {
	if h.reentry {
		return 0
	}
	return int(h.lease.Attempt)
}

// Answer releases the lock of an idempotent request, which leaves the answer.
func (h *Handle) Answer(ctx context.Context, a store.Answer) error {
	if h.Attempt() == 0 {
		return errors.New("core: the lock was not taken for an idempotent request")
	}
	s := h.lease
	s.mu.Lock()
	s.answer = &a
	s.mu.Unlock()
	return h.Release(ctx, store.Done, option.AwaitedRelease)
}
