package core

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// acquisition is what Redis knows of a lock. After a hand-off in memory it is that of the first holder.
type acquisition struct {
	store.Terms
	owner      string
	redisToken int64
	ahead      bool          // the token is ahead of the clock of Redis
	attempt    int32         // the number of that at an idempotent request; 0: it is for none
	heldSince  schedule.Time // by this process
	ownerKnown *atomic.Bool  // others may have holds of the owner, in any lock that it has
}

// grant is a lock that a call has got.
type grant struct {
	acquisition
	life.Times
	token   int64
	hold    string
	resends *conn.Resends // of the acquisition
}

// lease is one acquisition as this process believes it: how long it lasts, and which handles
// share it. A fresh lock has one; re-entries through the context join it. The watchdog renews it.
type lease struct {
	acquisition
	engine *engine
	first  *handle // whose call has taken it: the log is told of the lease in the context of that
	name   store.Name
	token  int64
	since  schedule.Time // when it was taken

	mu             sync.Mutex
	life           life.Life
	due            schedule.Time // when the scheduler calls Due, as it was told; 0: not at all
	renewals       uint32        // confirmed
	refreshed      bool          // by a user: Redis may have it for longer than is known here
	entered        bool          // once more
	work           store.Work    // what its holder has said of it
	ownOwnerKnown  atomic.Bool   // that of acquisition, where no other lock has the owner
	schedule.Entry               // here, for its size
	answer         *store.Answer // to the request; nil: it is not known yet
	handles        *handle       // not unlocked yet: a list, for nearly all leases have one
	observed       *observation  // nil: nobody has heard of it, or it has ended
}

// handle is what a lease knows of a [Lock].
type handle struct {
	next    *handle       // of the lease. Guarded by lease.mu
	id      string        // marks it in Redis
	resends *conn.Resends // of its acquisition
	under   protected     // what its context descends from
	state   life.Handle   // guarded by lease.mu
	reentry bool          // of a lease that had a handle
}

// end returns when the lease ends if nothing renews it, or a little later.
func (s *lease) end() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life.Ends.Add(s.engine.store.Margin(s.Lease)).Wall()
}

// takeOut takes a handle out. s.mu is held.
func (s *lease) takeOut(h *handle) {
	at := &s.handles
	for *at != h {
		at = &(*at).next
	}
	*at, h.next = h.next, nil
}

// failed notes what became of the work; a worse one stays.
func (s *lease) failed(work store.Work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = max(s.work, work)
}

// hasFailed says that its holder has said so.
func (s *lease) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.work != store.Done
}

// releaseOf is the release of a hold. s.mu is held.
func (s *lease) releaseOf(h *handle, work store.Work) store.Release {
	r := store.Release{
		Holding: s.holding(h), Terms: s.Terms, Token: s.redisToken, Last: s.token, Entered: s.entered,
		Work: work, MayArrive: h.resends.MayArriveTwice(), Context: s.first.under.call,
	}
	if s.life.Granted {
		r.Lease = 0
	}
	if r.Work == store.Done {
		r.Answer = s.answer
	}
	return r
}

// holding is a hold as Redis knows it.
func (s *lease) holding(h *handle) store.Holding {
	return store.Holding{Name: s.name, Owner: s.owner, Hold: h.id}
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

// renewal is called with s.mu held.
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
