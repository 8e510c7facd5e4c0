package core

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// lease is one acquisition as this process believes it: how long it lasts, who
// renews it, which handles share it. A fresh lock has one; re-entries through
// the context join it.
type lease struct {
	appointment
	locker *Locker
	lock   string // in Redis
	key    string // as the caller wrote it
	owner  string
	token  string
	length time.Duration
	since  moment // when it was taken

	keepFor   time.Duration
	maxHoldAt moment // 0: no bound

	mu       sync.Mutex
	deadline moment // when Redis may have ended it, and a little before
	ends     moment // when Redis ends it, and not before
	renewAt  moment
	renewals uint32 // confirmed
	renewing bool
	overdue  bool // held longer than MaxHold
	expired  bool // lost when its time was over, not before
	fixed    bool // nobody renews it; needs no mu
	err      error
	handles  []*Lock      // not unlocked yet
	first    [1]*Lock     // room for most
	observed *observation // nil: nobody has heard of it, or it has ended
}

func (s *lease) names() names { return names{s.lock, s.locker.prefix} }

// margin makes the holder stop a little before the lease ends in Redis, for
// timers that fire late under load; in a quorum also for clocks that run at
// different speeds, as Redlock has it.
func (s *lease) margin(length time.Duration) time.Duration {
	if len(s.locker.backend.members()) > 1 {
		return length/100 + 2*time.Millisecond
	}
	return min(length/100, 10*time.Millisecond)
}

// extend starts the lease anew; sent is a time before Redis was asked. s.mu is
// held, or nobody else knows the lease yet.
func (s *lease) extend(sent time.Time, length time.Duration) {
	at := momentOf(sent)
	if d := at.add(length - s.margin(length)); d > s.deadline {
		s.deadline, s.ends = d, at.add(length)
	}
	s.renewAt = s.locker.together(at.add(s.length/3), s.length)
}

// together moves a renewal forward, by a twentieth of the time between two at most, so
// that it travels with others.
func (l *Locker) together(at moment, length time.Duration) moment {
	if grain := moment(length / 60); grain > 0 {
		at -= (at - l.started) % grain
	}
	return at
}

// end returns when the lease ends if nothing renews it.
func (s *lease) end() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends.time()
}

// schedule enters the next thing to happen in the agenda. s.mu is held.
func (s *lease) schedule() {
	next := s.deadline
	if s.maxHoldAt != 0 && !s.overdue && s.maxHoldAt < next {
		next = s.maxHoldAt
	}
	if s.renewable() && !s.renewing && s.renewAt < next {
		next = s.renewAt
	}
	s.locker.agenda.set(s, next)
}

func (s *lease) renewable() bool { return !s.fixed && !s.overdue }

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
	s.handles = append(s.handles, k)
	return nil
}

// leave takes a handle out, before its release is sent. With the last one the
// renewal stops. It fails when the handle has left before, or the lease is lost.
func (s *lease) leave(k *Lock) error {
	lossErr := s.check()
	s.mu.Lock()
	i := slices.Index(s.handles, k)
	if i >= 0 {
		s.handles = slices.Delete(s.handles, i, i+1)
	}
	last := len(s.handles) == 0
	s.mu.Unlock()
	if i < 0 {
		return notHeld(k.key)
	}
	if last {
		s.locker.agenda.remove(s)
	}
	return lossErr
}

func (s *lease) holds(k *Lock) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.handles, k)
}

// check returns why the lease is lost, or nil. It does not wait for the agenda
// to notice that the lease has ended. One that was released does not end.
func (s *lease) check() error {
	s.mu.Lock()
	late := s.err == nil && len(s.handles) > 0 && thisMoment() >= s.deadline
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

// settleUp closes the books on a lease that its last handle has left, and tells
// who waits if the lock is free.
func (s *lease) settleUp(free bool) {
	s.mu.Lock()
	over := len(s.handles) == 0 && s.err == nil
	s.mu.Unlock()
	if over {
		s.tellReleased(nil)
		s.locker.unregister(s)
		if free {
			s.locker.lines.signal(s.lock)
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
		if len(s.locker.backend.members()) == 1 {
			handles = slices.DeleteFunc(handles, func(k *Lock) bool { return !k.doubled() })
		}
		s.giveBack(handles)
	}
	return err
}

// giveBack releases the holds of a lease that has ended, in the background.
func (s *lease) giveBack(handles []*Lock) {
	for _, k := range handles {
		c := s.locker.releaseOf(k, true, away)
		s.locker.settleAll(lateRelease(c), time.Now().Add(s.length))
	}
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
	s.err, s.expired = why, thisMoment() >= s.deadline
	handles := slices.Clone(s.handles)
	s.mu.Unlock()

	for _, k := range handles {
		k.cancel(why)
	}
	l := s.locker
	l.agenda.remove(s)
	s.tellLost(why)
	if errors.Is(why, ErrLost) {
		l.report.problem("a lock was lost while held", "key", s.key, "error", why)
	}
	l.unregister(s)
	l.lines.signal(s.lock)
	return why
}

// due is the watchdog: it renews, and notices the ends.
func (s *lease) due(now moment) {
	s.mu.Lock()
	if s.err != nil || len(s.handles) == 0 {
		s.mu.Unlock()
		return
	}
	if now >= s.deadline {
		s.mu.Unlock()
		_ = s.expire()
		return
	}
	var overdue []*Lock
	if s.maxHoldAt != 0 && !s.overdue && now >= s.maxHoldAt {
		s.overdue = true
		overdue = append(overdue, s.handles...)
	}
	if s.renewable() && !s.renewing && now >= s.renewAt {
		s.renewing = true
		s.locker.backend.post(s.renewal())
	}
	s.schedule()
	observed := s.observed
	s.mu.Unlock()
	if len(overdue) > 0 {
		why := heldTooLong(s.key)
		s.tell(observed, Event{Kind: EventOverdue, Err: why})
		for _, k := range overdue {
			k.cancel(why)
		}
		s.locker.report.warn("a lock is held longer than MaxHold permits", "key", s.key)
	}
}

// renewal is a call for the next flush, in one piece: there are many.
func (s *lease) renewal() *delivery {
	r := &struct {
		delivery delivery
		call     call
		words    [4]any
	}{words: [4]any{s.lock, s.owner, s.token, leaseArg(s.length)}}
	r.call = *renewScript.call(1, r.words[:]...)
	r.delivery = delivery{call: &r.call, timeout: min(s.locker.timeout, s.length/3), to: s}
	return &r.delivery
}

// receive takes the outcome of a renewal.
func (s *lease) receive(values []any, err error, sent time.Time) {
	s.mu.Lock()
	s.renewing = false
	if s.err != nil || len(s.handles) == 0 {
		s.mu.Unlock()
		return
	}
	switch {
	case err != nil:
		s.renewAt = thisMoment().add(retryDelay(s.length))
	case len(values) > 0 && number(values[0]) == 1:
		s.renewals++
		s.extend(sent, s.length)
	default:
		s.mu.Unlock()
		_ = s.vanished()
		return
	}
	s.schedule()
	observed := s.observed
	s.mu.Unlock()
	if err != nil {
		s.locker.report.warn("a renewal failed and is repeated", "key", s.key, "error", err)
		s.tell(observed, Event{Kind: EventRenewalFailed, Err: err})
	}
}

// retryDelay is the pause after a failed renewal: short enough for many tries
// before the lease ends.
func retryDelay(lease time.Duration) time.Duration {
	return min(max(lease/50, 5*time.Millisecond), 250*time.Millisecond)
}
