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
	locker *Locker
	lock   string // in Redis
	key    string // as the caller wrote it
	owner  string
	token  int64
	length time.Duration
	since  schedule.Time // when it was taken

	// A lock that was passed on in memory keeps what Redis knows of the first holder.
	redisToken int64
	tenure     schedule.Time // since when this process has it
	ahead      bool          // the token is ahead of the clock of Redis

	keepFor   time.Duration
	maxHoldAt schedule.Time // 0: no bound

	mu         sync.Mutex
	deadline   schedule.Time // when Redis may have ended it, and a little before
	ends       schedule.Time // when Redis ends it, and not before
	renewAt    schedule.Time
	renewals   uint32 // confirmed
	granted    bool   // by a release, and not renewed yet
	renewing   bool
	overdue    bool        // held longer than MaxHold
	expired    bool        // lost when its time was over, not before
	fixed      bool        // nobody renews it; needs no mu
	entered    bool        // once more
	shared     atomic.Bool // others may have holds of the same owner
	dropWindow atomic.Bool // the work has failed
	err        error
	handles    []*Lock      // not unlocked yet
	first      [1]*Lock     // room for most
	observed   *observation // nil: nobody has heard of it, or it has ended
}

func (s *lease) name() store.Name { return store.NameOf(s.locker.prefix, s.lock) }

// lease returns that of a lock which the call has got just now, without its times.
func (r *request) lease(hold string, token int64) *lease {
	s := &lease{
		locker:     r.locker,
		lock:       r.name.Lock(),
		key:        r.key,
		owner:      store.OwnerOf(hold),
		token:      token,
		redisToken: token,
		length:     r.settings.lease,
		since:      schedule.Now(),
	}
	if m := r.settings.maxHold; m > 0 {
		s.maxHoldAt = s.since.Add(m)
	}
	return s
}

// open gives the lease its first handle.
func (s *lease) open(r *request, hold string, copies *conn.Copies) *Lock {
	k := newLock(r.ctx, s, r.key, hold, copies)
	s.handles = append(s.first[:0], k)
	return k
}

// share says that a hold of another Locker is about to join: then Redis counts more than
// this one knows. It fails as join does.
func (s *lease) share() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case len(s.handles) == 0:
		return lost(s.key, "the outer lock was unlocked", nil)
	}
	s.shared.Store(true)
	return nil
}

// end returns when the lease ends if nothing renews it.
func (s *lease) end() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends.Wall()
}

// join adds a handle that is about to re-enter. It fails when the lease is lost
// or was released meanwhile.
func (s *lease) join(k *Lock) error {
	if err := s.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if len(s.handles) == 0 {
		return lost(s.key, "the outer lock was unlocked", nil)
	}
	s.handles, s.entered = append(s.handles, k), true
	return nil
}

// leave takes a handle out, before its release is sent. With the last one the
// renewal stops. It fails when the handle has left before, or the lease is lost.
func (s *lease) leave(k *Lock) (last bool, err error) {
	lossErr := s.check()
	s.mu.Lock()
	i := slices.Index(s.handles, k)
	if i >= 0 {
		s.handles = slices.Delete(s.handles, i, i+1)
	}
	last = len(s.handles) == 0
	s.mu.Unlock()
	if i < 0 {
		return false, notHeld(k.key)
	}
	if last {
		s.locker.scheduler.Remove(s)
	}
	return last, lossErr
}

func (s *lease) holds(k *Lock) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.handles, k)
}

// check returns why the lease is lost, or nil. It does not wait for the scheduler
// to notice that the lease has ended. One that was released does not end.
func (s *lease) check() error {
	s.mu.Lock()
	late := s.err == nil && len(s.handles) > 0 && schedule.Now() >= s.deadline
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
		return heldTooLong(s.key)
	}
	return nil
}

// retire takes a lease that its last handle has left out of the books, and signals
// who waits if the lock is free.
func (s *lease) retire(free bool) {
	s.mu.Lock()
	over := len(s.handles) == 0 && s.err == nil
	s.mu.Unlock()
	if over {
		s.tellReleased(nil)
		s.locker.unregister(s)
		if free {
			s.locker.queues.Signal(s.lock)
		}
	}
}

// expire ends a lease whose time is over.
func (s *lease) expire() error {
	if s.fixed {
		return s.lose(lost(s.key, "its fixed lease is over", nil))
	}
	why := lost(s.key, "it could not be renewed in time", nil)
	s.mu.Lock()
	if s.overdue {
		why = lost(s.key, "its last lease is over", ErrMaxHold)
	}
	handles := slices.Clone(s.handles)
	s.mu.Unlock()
	err := s.lose(why)
	if err == why {
		s.giveBack(handles) // a renewal that arrives late must not keep the lock for nobody
	}
	return err
}

// vanished ends a lease that Redis does not know any more. A minority of a quorum may
// still have it, and a copy of an acquisition may still arrive.
func (s *lease) vanished() error {
	s.mu.Lock()
	handles := slices.Clone(s.handles)
	s.mu.Unlock()
	why := lost(s.key, "it was deleted, or somebody else has taken it", nil)
	err := s.lose(why)
	if err == why {
		if !s.locker.store.IsQuorum() {
			handles = slices.DeleteFunc(handles, func(k *Lock) bool { return !k.copies.Doubled() })
		}
		s.giveBack(handles)
	}
	return err
}

// lose tells all holders that the lease has ended, once, and returns why.
func (s *lease) lose(why error) error {
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return s.err
	}
	if len(s.handles) == 0 && errors.Is(why, ErrClosed) {
		s.mu.Unlock() // its release is under way: Close has nothing to take
		return nil
	}
	s.err, s.expired = why, schedule.Now() >= s.deadline
	handles := slices.Clone(s.handles)
	s.mu.Unlock()

	for _, k := range handles {
		k.cancel(why)
	}
	l := s.locker
	l.scheduler.Remove(s)
	s.tellLost(why)
	if errors.Is(why, ErrLost) {
		l.report.problem("a lock was lost while held", "key", s.key, "error", why)
	}
	l.unregister(s)
	l.queues.Signal(s.lock)
	return why
}
