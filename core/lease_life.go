package core

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// errLateGrant is why a lock that Redis granted is given back.
var errLateGrant = errors.New("the answer took longer than the lease")

// start starts the watchdog of a lease that has its first handle, unless it has ended by now, or the Locker closes.
func (s *lease) start() error {
	switch {
	case s.since >= s.life.Ends:
		return unavailableError("taking", s.name.Key(), fmt.Errorf("%w of %v", errLateGrant, s.Lease))
	case !s.engine.register(s):
		return closedError("taking", s.name.Key())
	}
	s.mu.Lock()
	_ = s.unlockAfter(life.Effects{})
	return nil
}

// join adds a handle that is about to re-enter; nil stands for one of another Locker, which only Redis
// counts. It fails when the lease is lost or parked, and with ErrNotHeld when it was released meanwhile.
func (s *lease) join(h *handle) error {
	s.mu.Lock()
	var in *life.Handle
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
	switch loss := s.unlockAfter(e); {
	case joins || loss != nil:
		return loss
	case state == life.Parked || state == life.HandedOverByTicket:
		return lostError(s.name.Key(), "it is being handed over", nil)
	default:
		return notHeldError(s.name.Key())
	}
}

// check returns why the lease is lost, or nil. It does not wait for the scheduler to notice that the
// lease has ended. One that was released does not end.
func (s *lease) check() error {
	s.mu.Lock()
	return s.unlockAfter(s.life.Check(schedule.Now()))
}

// notFound takes an answer of Redis that it does not know the lease any more.
func (s *lease) notFound() error {
	s.mu.Lock()
	return cmp.Or(s.unlockAfter(s.life.LeaseNotFound(schedule.Now())), notHeldError(s.name.Key()))
}

// observe begins an observation, and tells Observers what has happened before it.
func (s *lease) observe(o *observation) {
	s.mu.Lock()
	stands, overdue := s.life.State(), s.life.IsOverdue()
	if !stands.IsLost() {
		s.observed = o
	}
	s.mu.Unlock()
	if overdue {
		o.held(EventOverdue, "", maxHoldError(s.name.Key()))
	}
	if loss := s.loss(stands); loss != nil {
		o.held(EventLost, reasonOfLoss(stands, loss), loss)
	}
}

// What an event of its life entails for a lease.

// unlockAfter unlocks s.mu after an event of its life, and does what the event entails: first what s.mu guards, then what
// others hear of. It returns why the lease is lost, or nil.
func (s *lease) unlockAfter(e life.Effects) error {
	due := s.life.NextDue()
	switch due {
	case s.due:
	case 0:
		s.engine.scheduler.Remove(s)
	default:
		s.engine.scheduler.Set(s, due)
	}
	s.due = due
	if e.Renew {
		s.engine.store.Renew(s.renewal(), s.renewalTimeout(), s)
	}
	loss, observed, handles := s.loss(s.life.State()), s.observed, []*handle(nil)
	for h := s.handles; h != nil && (e.Overdue || e.Ended.IsLost()); h = h.next {
		handles = append(handles, h)
	}
	if e.Ended != 0 {
		s.observed = nil
	}
	s.mu.Unlock()
	why := loss
	if e.Overdue {
		why = maxHoldError(s.name.Key())
	}
	for _, h := range handles {
		h.under.end(why)
	}
	switch {
	case e.Overdue:
		observed.held(EventOverdue, "", why)
		s.engine.report.warn(s.first.under.call, "a lock is held longer than MaxHold permits", "key", s.name.Key())
	case e.Ended.IsLost():
		s.lose(e, why, handles, observed)
	case e.Ended != 0:
		observed.released()
		s.engine.unregister(s)
	}
	return loss
}

// lose gives back what may be left in Redis of a lease that was lost. The contexts of its handles have ended.
func (s *lease) lose(ended life.Effects, why error, handles []*handle, observed *observation) {
	for _, h := range handles {
		s.giveBack(h, ended)
	}
	reason := reasonOfLoss(ended.Ended, why)
	observed.held(EventLost, reason, why)
	tell := s.engine.report.problem
	if ended.Ended == life.Closed {
		tell = s.engine.report.warn
	}
	tell(s.first.under.call, "a lock was lost while held", "key", s.name.Key(), "reason", reason,
		"owner", s.owner, "for", schedule.Now().Sub(s.since).Round(time.Millisecond), "error", why)
	s.engine.unregister(s)
	s.engine.queues.Signal(s.name.Lock(), 0)
}

// giveBack releases in the background what may be left in Redis of a hold when its lease has ended so: the hold, unless its
// time is over there, or a minority of a quorum has it at most; and a copy of its acquisition that may still arrive.
func (s *lease) giveBack(h *handle, ended life.Effects) {
	s.mu.Lock()
	isOver := ended.Ended == life.FixedOver && !s.refreshed
	work := max(store.Failed, s.work)
	if s.attempt > 0 {
		work = store.Done // or not: nobody knows
	}
	r := s.releaseOf(h, work)
	s.mu.Unlock()
	r.Until = time.Now().Add(s.Lease)
	if !isOver && (!ended.NoHoldLeft || s.engine.store.MinorityMayKeep()) || r.MayArrive {
		s.engine.store.ReleaseLater(r)
	}
}

// loss is why a lease is lost that stands there; nil: it is not.
func (s *lease) loss(stands life.State) error {
	if !stands.IsLost() {
		return nil
	}
	reason, cause := "it was deleted, or somebody else has taken it", error(nil)
	switch stands {
	case life.Expired, life.ExpiredInRedis:
		reason = "it could not be renewed in time"
	case life.FixedOver:
		reason = "its fixed lease is over"
	case life.HeldTooLong:
		reason, cause = "its last lease is over", ErrMaxHold
	case life.ParkedTooLong:
		reason = "handing it over took too long"
	case life.Closed:
		return closedError("holding", s.name.Key())
	}
	return lostError(s.name.Key(), reason, cause)
}
