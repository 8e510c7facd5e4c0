package core

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// A release grants the lock to the process that waits first, and the message about it
// carries what the process needs to start at once. The lock then lasts for
// [store.GrantLease] only, so that it is not lost for long on a process that is dead or
// hangs; the holder renews it to its own lease.

// renewGrantAfter spares the renewal to those that are done with the lock by then.
const renewGrantAfter = 5 * time.Millisecond

// Where a message about a grant is lost, or comes late, the lock lies idle meanwhile. The
// process waits for reservations then, for so long: Redis notices whoever does not come for
// those, and has it poll.
const deafFor = 5 * time.Second

// lateGrant is how late a grant may be noticed.
const lateGrant = 50 * time.Millisecond

// clockDrift is more than the clocks of Redis and of this machine part within a second.
const clockDrift = 2 * time.Millisecond

// canBeGranted says that Redis need not be asked: it grants locks of the usual form only.
func (r *request) canBeGranted() bool {
	return r.isPlain() && !r.settings.Fixed && r.settings.KeepFor == 0 && r.settings.Lease >= store.GrantLease && r.locker.passes()
}

// message takes what a release tells this process of a lock.
func (l *Locker) message(lock, text string) {
	m, err := store.ReadMessage(text)
	switch {
	case err != nil:
		l.queues.Signal(lock)
	case m.Hold != "":
		l.granted(lock, m)
	case !l.queues.Reserved(lock, m.Yield):
		l.store.LeaveQueue(store.NameOf(l.prefix, lock), "", false, l.queues.Reserved)
	}
}

// granted gives a lock to the call that waits for it. If that is too late to be sure, or
// the call is just asking, it asks, with the same hold. A hold that nobody has any more is
// given back.
func (l *Locker) granted(lock string, m store.Message) {
	now := schedule.Now()
	var ends schedule.Time
	var by *position
	is := func(p *position) bool { return p.hold == m.Hold && !p.isSpent() }
	w, known := l.queues.Granted(lock, is, func(r *request, p *position) bool {
		ends, by = grantEnds(m, p, now), p
		return r.canBeGranted() && ends.Sub(now) >= store.GrantLease/2
	})
	if ends != 0 && now.Sub(ends) > lateGrant-store.GrantLease {
		l.missedGrant()
	}
	if w == nil {
		if !known && !l.holds(store.OwnerOf(m.Hold)) {
			l.store.LeaveQueue(store.NameOf(l.prefix, lock), m.Hold, false, l.queues.Reserved)
		}
		return
	}
	r := w.Request()
	s := r.lease(m.Hold, m.Token)
	s.ahead, s.granted = m.Ahead, true
	s.tenure, s.ends, s.renewAt = s.since, ends, s.since.Add(renewGrantAfter)
	s.deadline = ends.Add(-s.margin(store.GrantLease))
	k := s.open(r, m.Hold, &by.copies)
	if !l.register(s) {
		k.cancel(nil)
		w.Pass(nil)
		return
	}
	w.Pass(k)
}

// grantEnds is a time at which Redis has not ended a granted lock yet, 0 when none is known.
// The message may have been on its way for long; how old it is the clock of Redis tells, as
// it was when it last answered. By a clock that was not set, it did not arrive before that.
func grantEnds(m store.Message, p *position, arrived schedule.Time) schedule.Time {
	clock := p.clock.Load()
	if clock == nil {
		return 0
	}
	at := schedule.At(clock.NotBefore(m.At))
	if at.Sub(arrived) > clockDrift {
		return 0
	}
	return min(at, arrived).Add(store.GrantLease)
}

// noticed is called with a lock that was got by asking for it: Redis may have granted it
// long before, and nobody has heard of it.
func (p *position) noticed(l *Locker, g store.Grant) {
	if p == nil || g.Ahead {
		return
	}
	if clock := p.clock.Load(); clock != nil && g.Sent.Sub(clock.NotBefore(time.Duration(g.Token)*time.Microsecond)) > lateGrant {
		l.missedGrant()
	}
}

func (l *Locker) missedGrant() {
	l.deafUntil.Store(int64(schedule.Now().Add(deafFor)))
	l.tell(context.Background(), Event{Kind: EventGrantMissed})
}

// holds says whether a lock of that owner is held here.
func (l *Locker) holds(owner string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.leases {
		if s.owner == owner {
			return true
		}
	}
	return false
}
