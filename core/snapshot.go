package core

import (
	"cmp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Snapshot is what one Locker holds and waits for. Redis is not asked: it is what
// this process believes.
type Snapshot struct {
	// Held are the locks that are held, by key, those with one key by age.
	Held []Held
	// Waiting are the locks that calls wait for, by key. Some may be in Held.
	Waiting []Waiting
}

// Held is a lock that is held. One that was entered again through its context is
// there once, one that calls with the same [Owner] share once for each of them.
type Held struct {
	// Key as the caller wrote it.
	Key string
	// Owner is who holds it in Redis, as [Lock.Owner].
	Owner string
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

// Waiting is a lock that calls of this Locker wait for.
type Waiting struct {
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
func (l *Locker) Snapshot() Snapshot {
	leases := inPieces(&l.mu, &l.leases, func(*lease) bool { return true })
	slices.SortFunc(leases, func(a, b *lease) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.since, b.since))
	})

	waiting := l.lines.waits()
	slices.SortFunc(waiting, func(a, b Waiting) int { return strings.Compare(a.Key, b.Key) })
	waiters := make(map[string]int, len(waiting))
	for _, w := range waiting {
		waiters[w.Key] = w.Waiters
	}
	held := snapshots(leases)
	for i := range held {
		held[i].Waiters = waiters[held[i].Key]
	}
	return Snapshot{held, waiting}
}

// SnapshotOf is [Locker.Snapshot] of one key, at a small part of its cost. Of a key
// that is not valid nothing is held.
func (l *Locker) SnapshotOf(key string) Snapshot {
	n, err := l.names(key)
	if err != nil {
		return Snapshot{}
	}
	leases := inPieces(&l.mu, &l.leases, func(s *lease) bool { return s.lock == n.lock })
	slices.SortFunc(leases, func(a, b *lease) int { return cmp.Compare(a.since, b.since) })
	found := Snapshot{Held: snapshots(leases)}
	if w, ok := l.lines.waitsFor(n.lock); ok {
		found.Waiting = []Waiting{w}
		for i := range found.Held {
			found.Held[i].Waiters = w.Waiters
		}
	}
	return found
}

func snapshots(leases []*lease) []Held {
	held := make([]Held, 0, len(leases))
	now := thisMoment()
	for _, s := range leases {
		if h, ok := s.snapshot(now); ok {
			held = append(held, h)
		}
	}
	return held
}

// pieceOf is how many entries of a map are looked at before others have their turn.
const pieceOf = 256

// inPieces returns the keys of a map that fit. Others may change the map meanwhile: it
// gives mu back again and again.
func inPieces[K comparable, V any](mu *sync.Mutex, all *map[K]V, fits func(K) bool) []K {
	mu.Lock()
	defer mu.Unlock()
	var found []K
	seen := 0
	for k := range *all {
		if fits(k) {
			found = append(found, k)
		}
		if seen++; seen%pieceOf == 0 {
			mu.Unlock()
			runtime.Gosched()
			mu.Lock()
		}
	}
	return found
}

// snapshot is false for a lease that is lost, or being released.
func (s *lease) snapshot(now moment) (h Held, ok bool) {
	token, _ := strconv.ParseInt(s.token, 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	return Held{
		Key:      s.key,
		Owner:    s.owner,
		Token:    token,
		Since:    s.since.time().Round(0),
		TTL:      max(time.Duration(s.deadline-now), 0),
		Count:    len(s.handles),
		Renewals: int(s.renewals),
		Fixed:    s.fixed,
		Overdue:  s.overdue,
	}, s.err == nil && len(s.handles) > 0
}

// waits lists the locks that calls wait for. It does not keep mu for long.
func (ls *lines) waits() []Waiting {
	locks := inPieces(&ls.mu, &ls.byLock, func(string) bool { return true })
	found := make([]Waiting, 0, len(locks))
	for _, lock := range locks {
		if w, ok := ls.waitsFor(lock); ok {
			found = append(found, w)
		}
	}
	return found
}

// waitsFor is false when no call waits for the lock.
func (ls *lines) waitsFor(lock string) (w Waiting, ok bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var longest *waiter
	for _, ln := range ls.byLock[lock] {
		e := ln.members.Front()
		if ln.trying && e != nil {
			e = e.Next() // the head does not wait yet
		}
		if e == nil {
			continue
		}
		if w := e.Value.(*waiter); longest == nil || w.since < longest.since {
			longest = w
		}
	}
	if longest == nil {
		return Waiting{}, false
	}
	return Waiting{Key: longest.request.key, Waiters: ls.waiting(lock), Since: longest.since.time().Round(0)}, true
}
