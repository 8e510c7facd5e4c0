package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// The watchdog renews a lease before it ends, and notices its end.

// renewal is what keeps the lock. s.mu is held.
func (s *lease) renewal() store.Renew {
	return store.Renew{Name: s.name, Owner: s.owner, Token: s.redisToken, Lease: s.Lease, First: s.life.IsGranted()}
}

// renewalTimeout leaves time for another try. There is none for the first lease: an answer
// that comes late is better than none. s.mu is held.
func (s *lease) renewalTimeout() time.Duration {
	if s.life.IsGranted() {
		return min(s.engine.timeout, store.GrantLease)
	}
	return min(s.engine.timeout, s.Lease/renewalsPerLease)
}

// Due is the watchdog: it renews, and notices the ends.
func (s *lease) Due(schedule.Time) {
	s.mu.Lock()
	_ = s.follow(s.life.Due(schedule.Now()))
}

// Renewed takes the outcome of the watchdog's renewal.
func (s *lease) Renewed(held bool, err error, sent time.Time) {
	s.mu.Lock()
	s.life.RenewalAnswered()
	s.renewed(held, err, sent)
}

// renewed takes the outcome of a renewal. s.mu is held, and renewed unlocks it.
func (s *lease) renewed(held bool, err error, sent time.Time) {
	if !s.life.State().IsHeld() {
		s.mu.Unlock()
		return
	}
	now, observed := schedule.Now(), s.observed
	switch {
	case err != nil, !held && s.life.WasParked(schedule.At(sent)):
		_ = s.follow(s.life.NotRenewed(now.Add(s.retryDelay())))
	case held:
		s.renewals++
		_ = s.follow(s.life.Renewed(s.engine.timesOf(sent, s.Lease)))
	default:
		_ = s.follow(s.life.NotFound(now))
	}
	if err != nil {
		s.engine.report.warn(s.ctx, "a renewal failed and is repeated", "key", s.name.Key(), "error", err)
		observed.held(EventRenewalFailed, "", err)
	}
}

// retryDelay is the pause after a failed renewal: short enough for many tries
// before the lease ends. s.mu is held.
func (s *lease) retryDelay() time.Duration {
	if s.life.IsGranted() {
		return store.GrantLease / 50
	}
	return min(max(s.Lease/50, 5*time.Millisecond), 250*time.Millisecond)
}
