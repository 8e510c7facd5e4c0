package lease

import (
	"math/rand/v2"
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
	// Where all are renewed at once, because Redis may have forgotten them, there is such a pause between batches of them; and it
	// is not done more often.
	doubtedPause = 50 * time.Millisecond
	doubtedEvery = 5 * time.Second
)

// renewal is called with s.mu held.
func (s *lease) renewal() store.Renew {
	r := store.Renew{Name: s.Name, Owner: s.Owner, Token: s.RedisToken, Lease: s.Lease, First: s.life.Granted}
	r.Share, r.Last = s.downgrade == unsettled, s.Token
	return r
}

// renewalTimeout leaves time for another try. There is none for the first lease: an answer
// that comes late is better than none. s.mu is held.
func (s *lease) renewalTimeout() time.Duration {
	if s.life.Granted {
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
	isHeld, observed, age := s.life.State().IsHeld(), s.observed, schedule.Now().Sub(s.since)
	isLong := isHeld && err == nil && held && !s.mayLast && age >= longHold<<s.longLines
	if isLong {
		s.longLines++
	}
	_ = s.applyAndUnlock(s.renewed(held, err, sent))
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

// renewed is the event that the outcome of a renewal is. s.mu is held.
func (s *lease) renewed(held bool, err error, sent time.Time) (e life.Effects) {
	now := schedule.Now()
	switch {
	case !s.life.State().IsHeld():
	case err != nil, !held && s.life.WasParked(schedule.At(sent)):
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
	if s.life.Granted {
		return store.GrantLease / 50
	}
	return min(max(s.Lease/50, 5*time.Millisecond), 250*time.Millisecond)
}

// TimesOf are those of a lease that lasts for left from a time before Redis was asked on.
func (r *Registry) TimesOf(sent time.Time, left time.Duration) life.Times {
	at := schedule.At(sent)
	renewAt := at.Add(left / RenewalsPerLease)
	if grain := schedule.Time(left / RenewalsPerLease / togetherPer); grain > 0 {
		renewAt -= (renewAt - r.started) % grain
	}
	return life.Times{Ends: at.Add(left - r.Store.Margin(left)), RenewAt: renewAt}
}

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
		why = s.registry.errors.HeldTooLong(s.Name.Key())
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
		s.compensate(h, ended)
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

// compensate releases in the background what may be left in Redis of a hold when its lease has ended so: the hold, unless its
// time is over there, or a minority of a quorum has it at most; and a copy of its acquisition that may still arrive.
func (s *lease) compensate(h *Handle, ended life.Effects) {
	s.mu.Lock()
	isOver := ended.Ended == life.FixedOver && !s.refreshed
	work := max(store.Failed, s.work)
	if s.Attempt > 0 {
		work = store.Done // or not: nobody knows
	}
	r := s.releaseOf(h, work)
	s.mu.Unlock()
	r.Until = time.Now().Add(s.Lease)
	if !isOver && (!ended.NoHoldLeft || s.registry.Store.IsQuorum()) || r.MayArrive {
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
	switch {
	case ended == life.Closed:
		return "closed"
	case ended == life.HeldTooLong:
		return "max_hold"
	case ended.IsTimeOver():
		return "expired"
	}
	return "deleted"
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
		o.Overdue(s.registry.errors.HeldTooLong(s.Name.Key()))
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

// Doubt has all locks renewed soon: Redis may have started anew, and know none of them. Other processes have noticed that at the
// same time.
func (r *Registry) Doubt() {
	now, until := schedule.Now(), r.doubtedUntil.Load()
	if now < schedule.Time(until) || !r.doubtedUntil.CompareAndSwap(until, int64(now.Add(doubtedEvery))) {
		return
	}
	by := now.Add(rand.N(doubtedPause))
	for i, s := range r.leasesThat(func(*lease) bool { return true }) {
		s.mu.Lock()
		s.life.Doubted(by.Add(time.Duration(i/batchSize) * doubtedPause))
		_ = s.applyAndUnlock(life.Effects{})
	}
}

// TakeAway takes all locks away from their holders.
func (r *Registry) TakeAway() {
	for _, s := range r.leasesThat(func(*lease) bool { return true }) {
		s.mu.Lock()
		_ = s.applyAndUnlock(s.life.Close())
	}
}
