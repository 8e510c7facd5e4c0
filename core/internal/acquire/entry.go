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
	store.Entry
	since schedule.Time

	mu         sync.Mutex
	consumed   bool        // it has the lock, or was given up: the next call asks by another one
	mayEnqueue int32       // so many releases may have enqueued it, or may yet
	clock      store.Clock // of Redis, when it was in the queue last, unless the lock was granted to it since; zero: it never was
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
func (e *entry) consume() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.consumed
	e.consumed = true
	return !was
}

// lastQueued is what the clock of Redis showed when the entry was in the queue last. isInUse is false
// when no call asks by it any more.
func (e *entry) lastQueued() (clock store.Clock, isInUse bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.clock, !e.consumed
}

// releaseAnswered takes the answer to such a release. Without a clock it does not say whether the entry is in the queue.
func (e *entry) releaseAnswered(clock store.Clock) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if clock.Redis == 0 {
		return
	}
	e.mayEnqueue--
	e.clock = clock
}

// releaseWithdrawn takes such a release back, which was not sent.
func (e *entry) releaseWithdrawn() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mayEnqueue--
}
