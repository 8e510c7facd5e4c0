package core

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// Snapshot is what one Locker holds and waits for. Redis is not asked: it is what
// this process believes.
type Snapshot struct {
	// Process is what the Locker says of itself, in the owner of what it holds.
	Process Process
	// Held are the locks that are held, by key, those with one key by age.
	Held []HeldLock
	// Waiting are the locks that calls wait for, by key. Some may be in Held.
	Waiting []AwaitedLock
}

// HeldLock is a lock that is held. A lock that was entered again through its context is listed
// once. A lock that calls share, by [Shared], [Permits] or one [Owner], is listed once for each
// of these calls.
type HeldLock struct {
	// Key as the caller wrote it.
	Key string
	// Owner is who holds it in Redis, as [Lock.Owner].
	Owner string
	// Form is how it is held: "exclusive", "shared" or "permits".
	Form string
	// Token is its fencing token.
	Token int64
	// Since is when it was taken, by the clock of this machine.
	Since time.Time
	// TTL is how long it lasts without another renewal, never negative: what is
	// left until its Context ends with [ErrLost].
	TTL time.Duration
	// Count is the number of its holds: handles that are not unlocked yet.
	Count int
	// Renewals counts those that Redis has confirmed.
	Renewals int
	// Waiters is the number of calls of this Locker that wait for it.
	Waiters int
	// Fixed says that nothing renews it, as with [FixedLease].
	Fixed bool
	// Overdue says that it has been held for longer than [MaxHold]: its Context
	// has ended, but whoever works under it goes on.
	Overdue bool
}

// AwaitedLock is a lock that calls of this Locker wait for.
type AwaitedLock struct {
	// Key as the caller wrote it.
	Key string
	// Waiters is the number of calls, at least 1.
	Waiters int
	// Since is when the one that has waited longest has come, by the clock of this
	// machine.
	Since time.Time
}

// Snapshot lists what the Locker holds and waits for. Each entry is true of one
// moment, the list is not: locks come and go meanwhile. It asks nobody and holds
// nobody up for more than some microseconds, but 10,000 locks take some milliseconds
// of a processor. Safe for concurrent use, also after [Locker.Close].
//
// With keys it lists only those, at a small part of the cost; of a key that is not valid
// nothing is held. No keys stand for all.
func (l *Locker) Snapshot(keys ...string) Snapshot {
	leases := l.leasesThat(func(s *lease) bool { return len(keys) == 0 || slices.Contains(keys, s.name.Key()) })
	var locks []string
	for _, key := range keys {
		if n, err := l.name(key); err == nil && !slices.Contains(locks, n.Lock()) {
			locks = append(locks, n.Lock())
		}
	}
	if len(keys) == 0 {
		locks = l.queues.Locks()
	}
	slices.SortFunc(leases, func(a, b *lease) int {
		return cmp.Or(strings.Compare(a.name.Key(), b.name.Key()), cmp.Compare(a.since, b.since))
	})
	waiting := make([]AwaitedLock, 0, len(locks))
	waiters := make(map[string]int, len(locks))
	for _, lock := range locks {
		if w, ok := l.queues.WaitFor(lock); ok {
			waiting = append(waiting, AwaitedLock{Key: w.Request.name.Key(), Waiters: w.Calls, Since: w.Since.Round(0)})
			waiters[w.Request.name.Key()] = w.Calls
		}
	}
	slices.SortFunc(waiting, func(a, b AwaitedLock) int { return strings.Compare(a.Key, b.Key) })
	held := make([]HeldLock, 0, len(leases))
	now := schedule.Now()
	for _, s := range leases {
		if h, ok := s.snapshot(now); ok {
			h.Waiters = waiters[h.Key]
			held = append(held, h)
		}
	}
	return Snapshot{l.self, held, waiting}
}

// snapshot is false for a lease that is lost, or being released.
func (s *lease) snapshot(now schedule.Time) (h HeldLock, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return HeldLock{
		Key:      s.name.Key(),
		Owner:    s.owner,
		Form:     s.form.String(),
		Token:    s.token,
		Since:    s.since.Wall().Round(0),
		TTL:      max(time.Duration(s.until()-now), 0),
		Count:    len(s.handles),
		Renewals: int(s.renewals),
		Fixed:    s.fixed,
		Overdue:  s.overdue,
	}, s.err == nil && len(s.handles) > 0
}
