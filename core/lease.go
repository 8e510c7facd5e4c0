package core

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// lease is one acquisition as this process believes it: how long it lasts, who
// renews it, which handles share it. A fresh lock has one; re-entries through
// the context join it.
type lease struct {
	schedule.Entry
	acquisition
	locker *Locker
	name   store.Name
	token  int64
	since  schedule.Time // when it was taken

	keepFor   time.Duration
	attempt   *attempt      // at a request; nil: it is of none
	maxHoldAt schedule.Time // 0: no bound

	mu         sync.Mutex
	times      times
	renewals   uint32 // confirmed
	leaving    uint32 // releases under way, of handles that are unlocked
	renewing   bool
	overdue    bool        // held longer than MaxHold
	parked     bool        // its only handle is being handed over
	expired    bool        // lost when its time was over, not before
	entered    bool        // once more
	resumed    bool        // by a ticket. It does not change
	shared     atomic.Bool // others may have holds of the same owner
	dropWindow atomic.Bool // the work has failed
	err        error
	handles    []*Lock      // not unlocked yet
	first      [1]*Lock     // room for most
	observed   *observation // nil: nobody has heard of it, or it has ended
}

// acquisition is what Redis knows of a lock. One that is passed on in memory keeps that of the
// first holder.
type acquisition struct {
	form       store.Form
	owner      string
	redisToken int64
	length     time.Duration
	fixed      bool          // nobody renews it
	ahead      bool          // the token is ahead of the clock of Redis
	heldSince  schedule.Time // by this process
}

// times are those of a lease that a renewal moves.
type times struct {
	deadline    schedule.Time // when Redis may have ended it, and a little before
	ends        schedule.Time // when Redis ends it, and not before
	renewAt     schedule.Time
	parkedUntil schedule.Time // at the latest, while it is being handed over; a renewal that was sent by then says nothing
	unrenewed   bool          // a release has granted it, and it was not renewed yet
}

// open makes the lease of a lock that the call has got just now, with its first handle.
func (c *call) open(a acquisition, t times, token int64, hold string, resends *conn.Resends) *Lock {
	both := &struct {
		lease lease
		first Lock
	}{lease: lease{acquisition: a, times: t, locker: c.locker, name: c.name, token: token, since: schedule.Now()}}
	s, k := &both.lease, &both.first
	if s.heldSince == 0 {
		s.heldSince = s.since
	}
	if m := c.settings.MaxHold; m > 0 {
		s.maxHoldAt = s.since.Add(m)
	}
	k.begin(c, s, hold, resends)
	s.handles = append(s.first[:0], k)
	return k
}

// end returns when the lease ends if nothing renews it.
func (s *lease) end() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times.ends.Wall()
}

// join adds a handle that is about to re-enter; nil stands for one of another Locker: then Redis
// counts more holds than this lease knows. It fails when the lease is lost or was released
// meanwhile.
func (s *lease) join(k *Lock) error {
	if err := s.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case len(s.handles) == 0 || s.parked:
		return lost(s.name.Key(), "the outer lock was unlocked", nil)
	case k == nil:
		s.shared.Store(true)
	default:
		s.handles, s.entered = append(s.handles, k), true
	}
	return nil
}

// leave takes a handle out, before its release is sent. With the last one the renewal stops.
// retire must follow, unless the lock is passed on. It fails when the handle has left before,
// or the lease is lost: then neither follows.
func (s *lease) leave(k *Lock) (last bool, err error) {
	_ = s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.has(k) {
		k.unlocked = true
		return false, notHeld(k.Key())
	}
	return s.takeOut(k), s.err
}

// has says that a handle is not unlocked, nor being handed over. s.mu is held.
func (s *lease) has(k *Lock) bool { return !s.parked && slices.Contains(s.handles, k) }

// takeOut takes a handle out; retire must follow. s.mu is held.
func (s *lease) takeOut(k *Lock) (last bool) {
	i := slices.Index(s.handles, k)
	s.handles = slices.Delete(s.handles, i, i+1)
	s.leaving++
	if last = len(s.handles) == 0; last {
		s.locker.scheduler.Remove(s)
	}
	return last
}

// until is when Redis may have ended it, and a little before. s.mu is held.
func (s *lease) until() schedule.Time {
	if s.parked {
		return s.times.parkedUntil
	}
	return s.times.deadline
}

// check returns why the lease is lost, or nil. It does not wait for the scheduler
// to notice that the lease has ended. One that was released does not end.
func (s *lease) check() error {
	s.mu.Lock()
	late := s.err == nil && len(s.handles) > 0 && schedule.Now() >= s.until()
	err := s.err
	s.mu.Unlock()
	if late {
		return s.expire()
	}
	return err
}

// usable is check for what would prolong the lease.
func (s *lease) usable() error {
	if err := s.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overdue {
		return heldTooLong(s.name.Key())
	}
	return nil
}

// retire ends what leave has begun; err is that of the release. The last one takes the lease
// out of the books. Who waits is signalled if the lock is free.
func (s *lease) retire(free bool, err error) {
	s.mu.Lock()
	s.leaving--
	left := len(s.handles) == 0 && s.err == nil
	over := left && s.leaving == 0
	if left && err != nil && s.observed != nil {
		s.observed.unconfirmed = err
	}
	s.mu.Unlock()
	if over {
		s.tellReleased()
		s.locker.unregister(s)
	}
	if left && free {
		s.locker.queues.Signal(s.name.Lock(), 0)
	}
}

// expire ends a lease whose time is over. A renewal that arrives late must not keep the
// lock for nobody.
func (s *lease) expire() error {
	s.mu.Lock()
	overdue, parked := s.overdue, s.parked
	s.mu.Unlock()
	why := lost(s.name.Key(), "it could not be renewed in time", nil)
	switch {
	case parked:
		why = lost(s.name.Key(), "handing it over took too long", nil)
	case s.fixed:
		why = lost(s.name.Key(), "its fixed lease is over", nil)
	case overdue:
		why = lost(s.name.Key(), "its last lease is over", ErrMaxHold)
	}
	return s.lose(why, func(*Lock) bool { return parked || !s.fixed })
}

// vanished ends a lease that Redis does not know any more. A minority of a quorum may
// still have it, and a copy of an acquisition may still arrive.
func (s *lease) vanished() error {
	return s.lose(lost(s.name.Key(), "it was deleted, or somebody else has taken it", nil), func(k *Lock) bool {
		return s.locker.store.Can.Differ || k.resends.MayArriveTwice()
	})
}

// lose tells all holders that the lease has ended, once, and returns why. The holds that
// may be left in Redis are given back.
func (s *lease) lose(why error, left func(*Lock) bool) error {
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return s.err
	}
	if len(s.handles) == 0 && errors.Is(why, ErrClosed) {
		s.mu.Unlock() // its release is under way: Close has nothing to take
		return nil
	}
	s.err, s.expired = why, schedule.Now() >= s.until()
	handles := slices.Clone(s.handles)
	s.mu.Unlock()

	for _, k := range handles {
		k.cancel(why)
	}
	s.giveBack(slices.DeleteFunc(handles, func(k *Lock) bool { return !left(k) }))
	l := s.locker
	l.scheduler.Remove(s)
	s.tellLost(why)
	if errors.Is(why, ErrLost) {
		l.report.problem("a lock was lost while held", "key", s.name.Key(), "error", why)
	}
	l.unregister(s)
	l.queues.Signal(s.name.Lock(), 0)
	return why
}
