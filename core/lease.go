package core

import (
	"cmp"
	"context"
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
	schedule.Entry
	acquisition
	engine *engine
	ctx    context.Context // of the call, as its first handle has it: the log is told of the lease in it
	name   store.Name
	token  int64
	since  schedule.Time // when it was taken

	mu            sync.Mutex
	life          life.Life
	renewals      uint32        // confirmed
	refreshed     bool          // by a user: Redis may have it for longer than is known here
	entered       bool          // once more
	work          store.Work    // what its holder has said of it
	ownOwnerKnown atomic.Bool   // that of acquisition, where no other lock has the owner
	answer        *store.Answer // to the request; nil: it is not known yet
	handles       *handle       // not unlocked yet: a list, for nearly all leases have one
	observed      *observation  // nil: nobody has heard of it, or it has ended
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

// begin starts the watchdog of a lease that has its first handle. It is false when the Locker closes.
func (s *lease) begin() bool {
	if !s.engine.register(s) {
		return false
	}
	s.mu.Lock()
	_ = s.follow(s.life.Begin())
	return true
}

// end returns when the lease ends if nothing renews it, or a little later.
func (s *lease) end() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life.Times().Ends.Add(s.engine.store.Margin(s.Lease)).Wall()
}

// join adds a handle that is about to re-enter; nil stands for one of another Locker, which only Redis
// counts. It fails when the lease is lost or parked, and with ErrNotHeld when it was released meanwhile.
func (s *lease) join(h *handle) error {
	s.mu.Lock()
	var state *life.Handle
	if h != nil {
		state = &h.state
	}
	joins, e := s.life.Join(schedule.Now(), state)
	switch {
	case joins && h == nil:
		s.ownerKnown.Store(true)
	case joins:
		*s.find(nil), s.entered = h, true
	}
	stands := s.life.State()
	switch loss := s.follow(e); {
	case joins || loss != nil:
		return loss
	case stands == life.Parked || stands == life.HandedOver:
		return lostError(s.name.Key(), "it is being handed over", nil)
	default:
		return notHeldError(s.name.Key())
	}
}

// leave takes a handle out, and returns its release. With the last one the renewal stops. retire must follow, unless the
// lock is handed off, or leave fails: the handle has left before, is lost, or, with ErrHandedOver itself, handed over.
func (s *lease) leave(h *handle) (r releasing, err error) {
	s.mu.Lock()
	leaves, e := s.life.Leave(schedule.Now(), &h.state)
	after, passed := s.followLocked(e), h.state == life.Passed
	if leaves { // its context ends with the lease, so that comes first
		s.takeOut(h)
		r = s.releasing(h)
		r.last = s.handles == nil
	}
	s.mu.Unlock()
	switch loss := s.followUnlocked(after); {
	case passed:
		return r, ErrHandedOver
	case !leaves:
		return r, notHeldError(s.name.Key())
	default:
		return r, loss
	}
}

// find returns what points to a handle, or the end of the list. s.mu is held.
func (s *lease) find(h *handle) **handle {
	at := &s.handles
	for *at != nil && *at != h {
		at = &(*at).next
	}
	return at
}

// all returns the handles. s.mu is held.
func (s *lease) all() (all []*handle) {
	for h := s.handles; h != nil; h = h.next {
		all = append(all, h)
	}
	return all
}

// takeOut takes a handle out. s.mu is held.
func (s *lease) takeOut(h *handle) { *s.find(h), h.next = h.next, nil }

// check returns why the lease is lost, or nil. It does not wait for the scheduler to notice that the
// lease has ended. One that was released does not end.
func (s *lease) check() error {
	s.mu.Lock()
	return s.follow(s.life.Check(schedule.Now()))
}

// usable is check for what would prolong the lease.
func (s *lease) usable() error {
	s.mu.Lock()
	e, overdue := s.life.Check(schedule.Now()), s.life.IsOverdue()
	if loss := s.follow(e); loss != nil || !overdue {
		return loss
	}
	return maxHoldError(s.name.Key())
}

// retire ends what leave has begun; err is that of the release. The last one ends the lease. Waiting
// calls are signalled if the lock is free.
func (s *lease) retire(signal signalling, err error) {
	s.mu.Lock()
	e, stands := s.life.Left(), s.life.State()
	left := !stands.HasHandles() && !stands.IsLost()
	if left && err != nil && s.observed != nil {
		s.observed.unconfirmed = err
	}
	if _ = s.follow(e); left && signal == signalQueue {
		s.engine.queues.Signal(s.name.Lock(), 0)
	}
}

// notFound takes an answer of Redis that it does not know the lease any more.
func (s *lease) notFound() error {
	s.mu.Lock()
	return cmp.Or(s.follow(s.life.NotFound(schedule.Now())), notHeldError(s.name.Key()))
}

// notFoundByRelease takes the same answer to a release of its own.
func (s *lease) notFoundByRelease() error {
	s.mu.Lock()
	return cmp.Or(s.follow(s.life.NotFoundByRelease(schedule.Now())), s.loss(life.Deleted)) // it was handed off
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
