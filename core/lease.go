package core

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// lease is one acquisition as this process believes it: how long it lasts, and which handles
// share it. A fresh lock has one; re-entries through the context join it. The watchdog renews it.
type lease struct {
	schedule.Entry
	acquisition
	engine *engine
	name   store.Name
	token  int64
	since  schedule.Time // when it was taken

	maxHoldAt schedule.Time // 0: no bound

	mu          sync.Mutex
	times       times
	parkedUntil schedule.Time // at the latest, while it is being handed over; a renewal that was sent by then says nothing
	renewals    uint32        // confirmed
	leaving     uint32        // releases under way, of handles that are unlocked
	renewing    bool
	overdue     bool          // held longer than MaxHold
	parked      bool          // its only handle is being handed over
	expired     bool          // lost when its time was over, not before
	entered     bool          // once more
	work        store.Work    // what its holder has said of it
	alone       atomic.Bool   // room for acquisition.shared, where no other lock has the owner
	answer      *store.Answer // to the request; nil: it is not known yet
	err         error
	handles     *handle      // not unlocked yet: a list, for nearly all leases have one
	observed    *observation // nil: nobody has heard of it, or it has ended
}

// handle is what a lease knows of a [Lock].
type handle struct {
	next       *handle       // of the lease. Guarded by lease.mu
	id         string        // marks it in Redis
	resends    *conn.Resends // of its acquisition
	under      protected     // what its context descends from
	unlocked   bool          // while it was handed over. Guarded by lease.mu
	entering   bool          // a re-entry that Redis has not confirmed: it holds nothing yet. Guarded by lease.mu
	reentry    bool          // of a lease that had a handle
	handedOver atomic.Bool
}

// begin starts the watchdog of a lease that has its first handle. It is false when the Locker closes.
func (s *lease) begin() bool {
	if !s.engine.register(s) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reschedule()
	return true
}

// end returns when the lease ends if nothing renews it, or a little later.
func (s *lease) end() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times.deadline.Add(s.engine.margin(s.Lease)).Wall()
}

// join adds a handle that is about to re-enter; nil stands for one of another Locker, which only Redis
// counts. It fails when the lease is lost or parked, and with ErrNotHeld when it was released meanwhile.
func (s *lease) join(h *handle) error {
	_ = s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.parked:
		return lostError(s.name.Key(), "it is being handed over", nil)
	case !s.isHeld():
		return notHeldError(s.name.Key())
	case h == nil:
		s.shared.Store(true)
	default:
		*s.find(nil), s.entered, h.entering = h, true, true
	}
	return nil
}

// leave takes a handle out, before its release is sent. With the last one the renewal stops. retire
// must follow, unless the lock is handed off, or it fails: the handle has left before, or is lost.
func (s *lease) leave(h *handle) (last bool, err error) {
	_ = s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.has(h) {
		h.unlocked = true
		return false, notHeldError(s.name.Key())
	}
	return s.takeOut(h), s.err
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

// isHeld says that a handle is not unlocked. One that is entering does not hold the lock: when all others have left,
// Redis may have freed it, and nothing is lost. s.mu is held.
func (s *lease) isHeld() bool {
	h := s.handles
	for h != nil && h.entering {
		h = h.next
	}
	return h != nil
}

// has says that a handle is not unlocked, nor being handed over. s.mu is held.
func (s *lease) has(h *handle) bool { return !s.parked && *s.find(h) != nil }

// takeOut takes a handle out; retire must follow. s.mu is held.
func (s *lease) takeOut(h *handle) (last bool) {
	*s.find(h), h.next = h.next, nil
	s.leaving++
	if last = s.handles == nil; last {
		s.engine.scheduler.Remove(s)
	}
	return last
}

// stopAt is when the holder must stop: the local deadline, or parkedUntil while parked. s.mu is held.
func (s *lease) stopAt() schedule.Time {
	if s.parked {
		return s.parkedUntil
	}
	return s.times.deadline
}

// check returns why the lease is lost, or nil. It does not wait for the scheduler to notice that the
// lease has ended. One that was released does not end.
func (s *lease) check() error {
	s.mu.Lock()
	reason, cause, left := "it could not be renewed in time", error(nil), true
	switch {
	case s.err != nil || !s.isHeld() || schedule.Now() < s.stopAt():
		defer s.mu.Unlock()
		return s.err
	case s.parked:
		reason = "handing it over took too long"
	case s.Fixed:
		reason, left = "its fixed lease is over", false
	case s.overdue:
		reason, cause = "its last lease is over", ErrMaxHold
	}
	return s.lose(lostError(s.name.Key(), reason, cause), left)
}

// usable is check for what would prolong the lease.
func (s *lease) usable() error {
	err := s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.overdue {
		err = maxHoldError(s.name.Key())
	}
	return err
}

// retire ends what leave has begun; err is that of the release. The last one ends the lease. Waiting
// calls are signalled if the lock is free.
func (s *lease) retire(free bool, err error) {
	s.mu.Lock()
	s.leaving--
	left := s.handles == nil && s.err == nil
	over := left && s.leaving == 0
	if left && err != nil && s.observed != nil {
		s.observed.unconfirmed = err
	}
	s.mu.Unlock()
	if over {
		s.endReleased()
	}
	if left && free {
		s.engine.queues.Signal(s.name.Lock(), 0)
	}
}

// endReleased ends a lease that its last handle has left.
func (s *lease) endReleased() {
	s.unobserved().released()
	s.engine.unregister(s)
}

// vanished ends a lease that Redis does not know any more; a minority of a quorum may, and of other holds than its own a
// release says nothing. When nobody holds it only a release can tell that it was lost: else Redis may have freed it since.
func (s *lease) vanished(byRelease bool) error {
	s.mu.Lock()
	if s.err == nil && !byRelease && !s.isHeld() {
		defer s.mu.Unlock()
		return notHeldError(s.name.Key())
	}
	return s.lose(lostError(s.name.Key(), "it was deleted, or somebody else has taken it", nil), byRelease || s.engine.store.Can.Differ)
}

// lose ends the contexts of all handles, once, and returns why. What may be left in Redis is given
// back: left says that the lock may be, and of a hold a copy of its acquisition may still arrive. s.mu is
// held, and lose unlocks it.
func (s *lease) lose(why error, left bool) error {
	if s.err != nil || s.handles == nil && errors.Is(why, ErrClosed) { // its release is under way: Close has nothing to take
		defer s.mu.Unlock()
		return s.err
	}
	s.err, s.expired = why, schedule.Now() >= s.stopAt()
	handles := s.all()
	s.mu.Unlock()

	for _, h := range handles {
		h.under.end(why)
	}
	for _, h := range handles {
		s.giveBack(h, left)
	}
	e := s.engine
	e.scheduler.Remove(s)
	s.unobserved().lost(why, s.expired)
	if errors.Is(why, ErrLost) {
		e.report.problem("a lock was lost while held", "key", s.name.Key(), "error", why)
	}
	e.unregister(s)
	e.queues.Signal(s.name.Lock(), 0)
	return why
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
	s.observed = o
	loss, overdue := s.err, s.overdue
	s.mu.Unlock()
	if overdue {
		o.held(EventOverdue, "", maxHoldError(s.name.Key()))
	}
	if loss != nil {
		s.unobserved().lost(loss, s.expired)
	}
}

// unobserved ends the observation, if there is one.
func (s *lease) unobserved() *observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.observed
	s.observed = nil
	return o
}
