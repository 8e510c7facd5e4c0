package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

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
	observed.lost(why, ended.Ended.IsTimeOver())
	tell := s.engine.report.problem
	if ended.Ended == life.Closed {
		tell = s.engine.report.warn
	}
	tell(s.first.under.call, "a lock was lost while held", "key", s.name.Key(), "reason", reasonOfLoss(why, ended.Ended.IsTimeOver()), "error", why)
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
	case life.Expired:
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

// The watchdog renews a lease before it ends, and notices its end.

const (
	// renewalsPerLease is how often the watchdog renews within a lease. So a holder endures for all but one
	// part of it that Redis does not answer.
	renewalsPerLease = 3
	// togetherPer is the part of the time between two renewals by which one may be sent earlier, with others.
	togetherPer = 20
	// renewGrantAfter spares the renewal of a granted lock to those that are done with it by then.
	renewGrantAfter = 5 * time.Millisecond
)

// timesOf are those of a lease that lasts for left from a time before Redis was asked on.
func (e *engine) timesOf(sent time.Time, left time.Duration) life.Times {
	at := schedule.At(sent)
	renewAt := at.Add(left / renewalsPerLease)
	if grain := schedule.Time(left / renewalsPerLease / togetherPer); grain > 0 {
		renewAt -= (renewAt - e.started) % grain
	}
	return life.Times{Ends: at.Add(left - e.store.Margin(left)), RenewAt: renewAt}
}

// Due is the watchdog: it renews, and notices the ends.
func (s *lease) Due(schedule.Time) {
	s.mu.Lock()
	_ = s.unlockAfter(s.life.Due(schedule.Now()))
}

// renewal is what keeps the lock. s.mu is held.
func (s *lease) renewal() store.Renew {
	return store.Renew{Name: s.name, Owner: s.owner, Token: s.redisToken, Lease: s.Lease, First: s.life.Granted}
}

// renewalTimeout leaves time for another try. There is none for the first lease: an answer
// that comes late is better than none. s.mu is held.
func (s *lease) renewalTimeout() time.Duration {
	if s.life.Granted {
		return min(s.engine.timeout, store.GrantLease)
	}
	return min(s.engine.timeout, s.Lease/renewalsPerLease)
}

// Renewed takes the outcome of the watchdog's renewal.
func (s *lease) Renewed(held bool, err error, sent time.Time) {
	s.mu.Lock()
	s.life.RenewalAnswered()
	isHeld, observed := s.life.State().IsHeld(), s.observed
	_ = s.unlockAfter(s.renewed(held, err, sent))
	if isHeld && err != nil {
		s.engine.report.warn(s.first.under.call, "a renewal failed and is repeated", "key", s.name.Key(), "error", err)
		observed.held(EventRenewalFailed, "", err)
	}
}

// renewed is the event that the outcome of a renewal is. s.mu is held.
func (s *lease) renewed(held bool, err error, sent time.Time) (e life.Effects) {
	now := schedule.Now()
	switch {
	case !s.life.State().IsHeld():
	case err != nil, !held && s.life.WasParked(schedule.At(sent)):
		s.life.NotRenewed(now.Add(s.retryDelay()))
	case held:
		s.renewals++
		s.life.Renewed(s.engine.timesOf(sent, s.Lease))
	default:
		e = s.life.LeaseNotFound(now)
	}
	return e
}

// retryDelay is the pause after a failed renewal: short enough for many tries
// before the lease ends. s.mu is held.
func (s *lease) retryDelay() time.Duration {
	if s.life.Granted {
		return store.GrantLease / 50
	}
	return min(max(s.Lease/50, 5*time.Millisecond), 250*time.Millisecond)
}
