package acquire

import (
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// entry is that of a wait queue of this process in the queue of the lock, in Redis: a hold with which all its calls ask, one
// after another, and to which a release can grant the lock.
type entry struct {
	store.Place
	since schedule.Time

	mu       sync.Mutex
	consumed bool        // it has the lock, or was given up: the next call asks by another one
	releases int32       // under way, which may enqueue it
	clock    store.Clock // of Redis, when it was in the queue last, unless the lock was granted to it since; zero: it never was
}

const (
	// A process that has missed a message polls for so long.
	pollAfterMiss = 5 * time.Second
	// Who has not subscribed after so long polls until it has.
	subscribeIn = 250 * time.Millisecond
	// An entry that could not be given up is out of the queue, and has lost the lock.
	leftAfter = 10 * time.Second
	// lateGrant is how late a grant may be noticed. Where Redis is far away each is noticed
	// late by a round trip, as far as is known.
	lateGrant = store.GrantLease / 4
)

// consume ends the use of an entry. It is false when that has ended before: two calls must not get one hold.
func (q *entry) consume() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.consumed
	q.consumed = true
	return !was
}

// lastQueued is what the clock of Redis showed when the entry was in the queue last. isInUse is false
// when no call asks by it any more.
func (q *entry) lastQueued() (clock store.Clock, isInUse bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.clock, !q.consumed
}

// releaseAnswered takes the answer to such a release. Without a clock it does not say whether the entry is in the queue.
func (q *entry) releaseAnswered(clock store.Clock) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if clock.Redis == 0 {
		return
	}
	q.releases--
	q.clock = clock
}

// releaseWithdrawn takes such a release back, which was not sent.
func (q *entry) releaseWithdrawn() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releases--
}
