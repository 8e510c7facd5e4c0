package lease

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// What an event of its life entails for a lease.

// applyAndUnlock does what an event of the lease's life entails, which s.mu guards, and then unlocks s.mu, and does what others
// hear of. It returns why the lease is lost, or nil.
func (s *lease) applyAndUnlock(e life.Effects) error {
	due := s.life.NextDue()
	switch due {
	case s.due:
	case 0:
		s.registry.Scheduler.Remove(s)
	default:
		s.registry.Scheduler.Set(s, due)
	}
	s.due = due
	if e.Renew {
		s.registry.Store.Renew(s.renewal(), s.renewalTimeout(), s)
	}
	loss, observed, handles := s.loss(s.life.State()), s.observed, []*Handle(nil)
	for h := s.handles; h != nil && (e.Overdue || e.Ended.IsLost()); h = h.next {
		handles = append(handles, h)
	}
	if e.Ended != 0 {
		s.observed = nil
	}
	s.mu.Unlock()
	why := loss
	if e.Overdue {
		why = s.registry.errors.Overdue(s.Name.Key())
	}
	for _, h := range handles {
		h.under.end(why)
	}
	switch {
	case e.Overdue:
		if observed != nil {
			observed.Overdue(why)
		}
		s.registry.Warn(s.first.under.call, "a lock is held longer than MaxHold permits", "key", s.Name.Key())
	case e.Ended.IsLost():
		s.lose(e, why, handles, observed)
	case e.Ended != 0:
		if observed != nil {
			observed.Released()
		}
		s.registry.unregister(s)
	}
	return loss
}

// lose compensates what may be left in Redis of a lease that was lost. The contexts of its handles have ended.
func (s *lease) lose(ended life.Effects, why error, handles []*Handle, observed Observer) {
	for _, h := range handles {
		s.compensate(h, s.remains(ended))
	}
	reason := reasonOfLoss(ended.Ended)
	if observed != nil {
		observed.Lost(reason, why)
	}
	log := s.registry.Problem
	if ended.Ended == life.Closed || ended.Ended == life.FixedOver { // as somebody has wanted
		log = s.registry.Warn
	}
	log(s.first.under.call, "a lock was lost while held", "key", s.Name.Key(), "reason", reason,
		"owner", s.Owner, "for", schedule.Now().Sub(s.since).Round(time.Millisecond), "error", why)
	s.registry.unregister(s)
	s.registry.releaser.MayBeFree(s.Name.Lock())
}

// remains is what may be left in Redis of a hold that this process has no more.
type remains uint8

const (
	copyRemains remains = iota // at most a copy of its acquisition, which may still arrive
	holdRemains                // the hold, too
)

// remains is what may be left of the holds of a lease that has ended so: none where their time is over, and where Redis has said that it
// knows none of them, but for a minority of a quorum.
func (s *lease) remains(ended life.Effects) remains {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended.Ended == life.FixedOver && !s.refreshed || ended.NoHoldLeft && !s.registry.Store.IsQuorum() {
		return copyRemains
	}
	return holdRemains
}

// compensate releases in the background what may be left in Redis of a hold.
func (s *lease) compensate(h *Handle, left remains) {
	s.mu.Lock()
	work := max(store.Failed, s.work)
	if s.Attempt > 0 {
		work = store.Done // or not: nobody knows
	}
	r := s.releaseOf(h, work)
	s.mu.Unlock()
	r.Until = time.Now().Add(s.Lease)
	if left == holdRemains || r.MayArrive {
		s.registry.Store.Compensate(r)
	}
}

// loss is why a lease is lost that is in this state; nil: it is not.
func (s *lease) loss(state life.State) error {
	if !state.IsLost() {
		return nil
	}
	return s.registry.errors.Lost(s.Name.Key(), state)
}

// reasonOfLoss is why Observers and the log hear that a lease was lost.
func reasonOfLoss(ended life.State) string {
	switch ended {
	case life.Closed:
		return "closed"
	case life.HeldTooLong:
		return "max_hold"
	case life.Deleted:
		return "deleted"
	}
	return "expired"
}

// observe begins an observation, which hears what has happened before it as well.
func (s *lease) observe(o Observer) {
	s.mu.Lock()
	state, overdue := s.life.State(), s.life.IsOverdue()
	if !state.IsLost() {
		s.observed = o
	}
	s.mu.Unlock()
	if overdue {
		o.Overdue(s.registry.errors.Overdue(s.Name.Key()))
	}
	if loss := s.loss(state); loss != nil {
		o.Lost(reasonOfLoss(state), loss)
	}
}

// check returns why the lease is lost, or nil. It does not wait for the scheduler to notice that the
// lease has ended. One that was released does not end.
func (s *lease) check() error {
	s.mu.Lock()
	return s.applyAndUnlock(s.life.Check(schedule.Now()))
}

// notFound takes an answer of Redis that it does not know the lease any more. It returns why it is lost, or nil, if it was released.
func (s *lease) notFound() error {
	s.mu.Lock()
	return s.applyAndUnlock(s.life.LeaseNotFound(schedule.Now()))
}
