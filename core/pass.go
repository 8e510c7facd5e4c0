package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// passFor is how long a process may pass a lock on from call to call before others have
// their chance.
const passFor = 10 * time.Millisecond

// pass gives the lock to the call of this process that waits first, in memory: the
// process keeps its hold in Redis. That is lock cohorting (Dice, Marathe and Shavit,
// PPoPP 2012). k was the last handle: of several that leave at once, one is. It is false when
// the lock has to be released.
func (k *Lock) pass() bool {
	s := k.lease
	l := s.locker
	if !s.canBePassed() {
		return false
	}
	w := l.queues.Choose(s.name.Lock(), s.matches)
	if w == nil {
		return false
	}
	next := k.successor(w.Request)
	if l.register(next.lease) {
		s.tellReleased()
		l.unregister(s)
		w.Pass(next)
		return true
	}
	next.cancel(nil)
	w.Pass(nil)
	return false
}

// canBePassed says that Redis need not know of the next holder: nothing but its token
// differs. Tokens stay below what the clock of Redis would give, should the lock end
// without its release; where they are ahead of it, nothing is passed on.
func (s *lease) canBePassed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := schedule.Now()
	kept := now.Sub(s.heldSince)
	return s.form == store.Exclusive && len(s.handles) == 0 && s.err == nil && now < s.times.deadline &&
		!s.shared.Load() && !s.ahead && !s.fixed && !s.overdue && s.keepFor == 0 &&
		kept < passFor && s.token-s.redisToken < kept.Microseconds() &&
		s.locker.store.Can.PassOn
}

// matches says that a call wants just such a lock.
func (s *lease) matches(c *call, _ *position) bool {
	want := c.settings
	return c.isPlain() && !c.isAttempt() && c.form == store.Exclusive && !want.Fixed && want.Lease == s.length && want.KeepFor == 0
}

// successor is the lock of the next holder.
func (k *Lock) successor(c *call) *Lock {
	s := k.lease
	s.mu.Lock()
	t := s.times
	s.mu.Unlock()
	return c.open(s.acquisition, t, s.token+1, k.hold, k.resends)
}

// drop ends a lock that nobody wants: it is passed on, or released in the background.
func (k *Lock) drop() {
	s := k.lease
	last, err := s.leave(k)
	k.cancel(nil)
	if err == nil && !(last && k.pass()) {
		s.giveBack([]*Lock{k})
		s.retire(true, nil)
	}
}
