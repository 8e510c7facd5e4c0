package lease

import (
	"cmp"
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Downgrade lets others share the lock.
func (h *Handle) Downgrade(ctx context.Context) error {
	s := h.lease
	if s.registry.Store.IsQuorum() {
		return errors.New("core: Downgrade: a lock of NewQuorum cannot be shared")
	}
	if err := cmp.Or(h.Check(), h.Usable()); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return s.registry.errors.Unanswered(ctx, downgrading, s.Name.Key(), conn.Ended(ctx))
	}
	asks, err := h.beginDowngrade()
	if asks == nil {
		return err
	}
	sent, mayArrive, err := s.registry.Store.Downgrade(ctx, *asks)
	s.mu.Lock()
	outcome, e := s.downgradeAnswered(err, mayArrive), life.Effects{}
	switch {
	case outcome == unsettled:
		s.life.NotRenewed(schedule.Now().Add(s.retryDelay()))
	case outcome == downgraded && !s.Fixed:
		e = s.renewalEvent(true, nil, sent)
	}
	_ = s.applyAndUnlock(e)
	switch {
	case err == nil:
		s.registry.releaser.MayBeFree(s.Name.Lock()) // calls here may wait without an entry in the queue of Redis
		return h.Check()
	case err == store.ErrGone:
		return cmp.Or(s.notFound(), s.registry.errors.NotHeld(s.Name.Key()))
	case err == store.ErrOthers && outcome == notAsked:
		return s.registry.errors.CannotBe(downgradedText, s.Name.Key(), "others have entered it")
	}
	return s.registry.errors.Unanswered(ctx, downgrading, s.Name.Key(), err)
}

const downgrading, downgradedText = "downgrading", "downgraded" // in errors

// beginDowngrade returns the request. From now on the handle counts as a sharer. It is nil when nothing is to be asked.
func (h *Handle) beginDowngrade() (*store.Renew, error) {
	s := h.lease
	s.mu.Lock()
	defer s.mu.Unlock()
	why := ""
	switch {
	case h.reentry:
		why = "it was entered, which is up to the outer handle"
	case s.downgrade == downgraded, s.downgrade == notAsked && s.Form == store.Shared:
		return nil, nil
	case s.downgrade != notAsked:
	case s.Form.NeedsPermit():
		why = "it is a permit"
	case s.Attempt > 0:
		why = "it is of an idempotent request"
	case s.Form.Stays():
		why = "it was handed over before"
	case h.group != nil:
		why = "it is one of several"
	case s.Window > 0:
		why = "it has a dedup window"
	case s.life.State() != life.Held || s.life.Holds() > 1:
		why = "an inner handle is open"
	}
	if why != "" {
		return nil, s.registry.errors.CannotBe(downgradedText, s.Name.Key(), why)
	}
	switch s.downgrade {
	case notAsked:
		s.Form, s.downgrade = store.Shared, asked
	case asked:
		s.downgrade = unsettled // nobody can know what is true when one of two is refused
	}
	asks := s.renewal()
	if s.Fixed {
		asks.Lease = 0
	} else {
		s.refreshed = true
	}
	return &asks, nil
}

// downgradeAnswered takes the outcome of a request. s.mu is held.
func (s *lease) downgradeAnswered(err error, mayArrive bool) downgrade {
	outcome := conn.OutcomeOf(err)
	switch hasDoneNothing := err == store.ErrOthers || outcome == conn.NotSent || outcome == conn.Refused; {
	case err == nil:
		s.downgrade = downgraded
	case hasDoneNothing && !mayArrive && s.downgrade == asked:
		s.Form, s.downgrade = store.Exclusive, notAsked
	case s.downgrade == asked:
		s.downgrade = unsettled
	}
	return s.downgrade
}
