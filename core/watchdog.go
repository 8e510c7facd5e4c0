package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// The watchdog renews a lease before it ends, and notices its end.

// extend starts the lease anew; sent is a time before Redis was asked. s.mu is held.
func (s *lease) extend(sent time.Time, length time.Duration) {
	t := s.engine.timesOf(sent, length)
	s.times = times{deadline: max(t.deadline, s.times.deadline), renewAt: t.renewAt}
}

// reschedule has the scheduler call Due for what happens next, unless the lease is lost. s.mu is held.
func (s *lease) reschedule() {
	if s.err != nil {
		return
	}
	next := s.stopAt()
	if s.maxHoldAt != 0 && !s.overdue && s.maxHoldAt < next {
		next = s.maxHoldAt
	}
	if s.renewable() && !s.renewing && s.times.renewAt < next {
		next = s.times.renewAt
	}
	s.engine.scheduler.Set(s, next)
}

// renewal is what keeps the lock. s.mu is held.
func (s *lease) renewal() store.Renew {
	return store.Renew{Name: s.name, Owner: s.owner, Token: s.redisToken, Lease: s.Lease, First: s.unrenewed}
}

// renewalTimeout leaves time for another try. There is none for the first lease: an answer
// that comes late is better than none. s.mu is held.
func (s *lease) renewalTimeout() time.Duration {
	if s.unrenewed {
		return min(s.engine.timeout, store.GrantLease)
	}
	return min(s.engine.timeout, s.Lease/renewalsPerLease)
}

// renewable: one that was granted gets its lease, at least. s.mu is held.
func (s *lease) renewable() bool {
	return !s.Fixed && !s.parked && (!s.overdue || s.unrenewed)
}

// Due is the watchdog: it renews, and notices the ends.
func (s *lease) Due(now schedule.Time) {
	_ = s.check() // ends it, if its time is over
	s.mu.Lock()
	if s.err != nil || !s.isHeld() {
		s.mu.Unlock()
		return
	}
	var overdue []*handle
	if s.maxHoldAt != 0 && !s.overdue && now >= s.maxHoldAt {
		s.overdue = true
		overdue = s.all()
	}
	if s.renewable() && !s.renewing && now >= s.times.renewAt {
		s.renewing = true
		s.engine.store.Renew(s.renewal(), s.renewalTimeout(), s)
	}
	s.reschedule()
	observed := s.observed
	s.mu.Unlock()
	if len(overdue) > 0 {
		why := maxHoldError(s.name.Key())
		observed.held(EventOverdue, "", why)
		for _, h := range overdue {
			h.under.end(why)
		}
		s.engine.report.warn("a lock is held longer than MaxHold permits", "key", s.name.Key())
	}
}

// Renewed takes the outcome of a renewal.
func (s *lease) Renewed(held bool, err error, sent time.Time) {
	s.mu.Lock()
	s.renewing = false
	if s.err != nil || !s.isHeld() {
		s.mu.Unlock()
		return
	}
	switch {
	case err != nil, !held && schedule.At(sent) <= s.parkedUntil: // perhaps it was parked then
		s.times.renewAt = schedule.Now().Add(s.retryDelay())
	case held:
		s.renewals++
		s.unrenewed = false
		s.extend(sent, s.Lease)
	default:
		s.mu.Unlock()
		_ = s.vanished(false)
		return
	}
	s.reschedule()
	observed := s.observed
	s.mu.Unlock()
	if err != nil {
		s.engine.report.warn("a renewal failed and is repeated", "key", s.name.Key(), "error", err)
		observed.held(EventRenewalFailed, "", err)
	}
}

// retryDelay is the pause after a failed renewal: short enough for many tries
// before the lease ends. s.mu is held.
func (s *lease) retryDelay() time.Duration {
	if s.unrenewed {
		return store.GrantLease / 50
	}
	return min(max(s.Lease/50, 5*time.Millisecond), 250*time.Millisecond)
}
