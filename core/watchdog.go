package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// The watchdog renews a lease before it ends, and notices its end.

const (
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
