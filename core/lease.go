package core

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

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

// handle is what a lease knows of a [Lock].
type handle struct {
	next    *handle       // of the lease. Guarded by lease.mu
	id      string        // marks it in Redis
	resends *conn.Resends // of its acquisition
	under   protected     // what its context descends from
	state   life.Handle   // guarded by lease.mu
	reentry bool          // of a lease that had a handle
}

// start starts the watchdog of a lease that has its first handle, unless it has ended by now, or the Locker closes.
func (s *lease) start() error {
	switch key := s.name.Key(); {
	case s.since >= s.life.Ends:
		return unavailableError("taking", key, fmt.Errorf("%w of %v", errLateGrant, s.Lease))
	case !s.engine.register(s):
		return closedError("taking", key)
	}
	s.mu.Lock()
	_ = s.unlockAfter(life.Effects{})
	return nil
}

// end returns when the lease ends if nothing renews it, or a little later.
func (s *lease) end() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life.Ends.Add(s.engine.store.Margin(s.Lease)).Wall()
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
		s.ownerKnown.Store(true)
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

// takeOut takes a handle out. s.mu is held.
func (s *lease) takeOut(h *handle) {
	at := &s.handles
	for *at != h {
		at = &(*at).next
	}
	*at, h.next = h.next, nil
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
	if stands.IsLost() {
		o.lost(s.loss(stands), stands.IsTimeOver())
	}
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
