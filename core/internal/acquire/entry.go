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
	consumed   bool        // it has the lock, was given up, or a copy may arrive yet: the next call asks by another one
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

// answeredBusy takes the answer that the lock is busy. It says that the lock was granted to the entry before, and nobody heard: then
// the entry, which was in the queue, is new to it. When copies may arrive yet the next call asks by another one.
func (e *entry) answeredBusy(busy *store.Busy, copied bool) (grantMissed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	grantMissed = busy.New && e.clock.IsKnown() && e.clock.Redis < busy.Clock.Redis
	e.consumed, e.clock = e.consumed || copied, busy.Clock
	return grantMissed
}

// answeredAcquired takes the answer that the entry has the lock. It returns for how long Redis may have had that granted before: 0
// where no release did.
func (e *entry) answeredAcquired(g store.Acquired) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.consumed = true
	if !e.clock.IsKnown() || g.Ahead || !g.Outermost {
		return 0
	}
	return g.Sent.Sub(e.clock.NotBefore(time.Duration(g.Token) * time.Microsecond))
}

// giveUp ends the use of the entry. It says whether the entry may be in the queue, or have the lock, and whether a release may enqueue it
// later.
func (e *entry) giveUp() (mayBeQueued, mayArrive bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	mayArrive = e.mayEnqueue > 0
	mayBeQueued = !e.consumed && (mayArrive || e.clock.IsKnown())
	e.consumed = true
	return mayBeQueued, mayArrive
}

// releaseBegins counts a release that enqueues the entry, until releaseAnswered or releaseWithdrawn.
func (e *entry) releaseBegins() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mayEnqueue++
}

// releaseAnswered takes the answer to such a release. Without a clock it does not say whether the entry is in the queue.
func (e *entry) releaseAnswered(clock store.Clock) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !clock.IsKnown() {
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
