package lease

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// The watchdog renews a lease before it ends, and notices its end.

const (
	// RenewalsPerLease is how often the watchdog renews within a lease. So a holder endures for all but one
	// part of it that Redis does not answer.
	RenewalsPerLease = 3
	// togetherPer is the part of the time between two renewals by which one may be sent earlier, with others.
	togetherPer = 20
	// longHold is for how long a lock is held when the log says so first. The pauses until it does so again double.
	longHold = 90 * time.Second
)

// renewal is called with s.mu held.
func (s *lease) renewal() store.Renew {
	r := store.Renew{Name: s.Name, Owner: s.Owner, Token: s.RedisToken, Lease: s.Lease, First: s.life.Times().Granted}
	r.Share, r.LastToken = s.downgrade == unsettled, s.Token
	return r
}

// renewalTimeout leaves time for another try. There is none for the first lease: an answer
// that comes late is better than none. s.mu is held.
func (s *lease) renewalTimeout() time.Duration {
	if s.life.Times().Granted {
		return min(s.registry.Timeout, store.GrantLease)
	}
	return min(s.registry.Timeout, s.Lease/RenewalsPerLease)
}

// Due is the watchdog: it renews, and notices the ends.
func (s *lease) Due(schedule.Time) {
	s.mu.Lock()
	_ = s.applyAndUnlock(s.life.Due(schedule.Now()))
}

// Renewed takes the outcome of the watchdog's renewal.
func (s *lease) Renewed(held bool, err error, sent time.Time) {
	s.mu.Lock()
	s.life.RenewalAnswered()
	isHeld, observed, age := s.life.State().IsReliedOn(), s.observed, schedule.Now().Sub(s.since)
	isLong := isHeld && err == nil && held && !s.mayLast && age >= longHold<<s.longLines
	if isLong {
		s.longLines++
	}
	_ = s.applyAndUnlock(s.renewalEvent(held, err, sent))
	if isLong {
		s.registry.Warn(s.first.under.call, "a lock is held for long", "key", s.Name.Key(), "owner", s.Owner, "for", age.Round(time.Millisecond))
	}
	if isHeld && err != nil {
		s.registry.Warn(s.first.under.call, "a renewal failed and is repeated", "key", s.Name.Key(), "error", err)
		if observed != nil {
			observed.RenewalFailed(err)
		}
	}
}

// renewalEvent is the event that the outcome of a renewal is. s.mu is held.
func (s *lease) renewalEvent(held bool, err error, sent time.Time) (e life.Effects) {
	now := schedule.Now()
	switch {
	case !s.life.State().IsReliedOn():
	case err != nil, !held && s.life.WasBeingHandedOver(schedule.At(sent)):
		s.life.NotRenewed(now.Add(s.retryDelay()))
	case held:
		s.renewals++
		s.life.Renewed(s.registry.TimesOf(sent, s.Lease))
	default:
		e = s.life.LeaseNotFound(now)
	}
	return e
}

// retryDelay is the pause after a failed renewal: short enough for many tries
// before the lease ends. s.mu is held.
func (s *lease) retryDelay() time.Duration {
	if s.life.Times().Granted {
		return store.GrantLease / 50
	}
	return min(max(s.Lease/50, 5*time.Millisecond), 250*time.Millisecond)
}
