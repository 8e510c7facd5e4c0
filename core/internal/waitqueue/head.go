package waitqueue

import (
	"runtime"
	"time"
)

// What others do with the queues of a lock: they look who waits, and have the heads ask Redis, or give one of them the lock.

// Signal has the heads of a lock's queues ask for it, which may be free, when the barging window is over: for so long
// those outside the queues go first.
func (q *Queues[R, L, E]) Signal(lock string, barging time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if until := time.Now().Add(barging); until.After(own.bargingUntil) {
			own.bargingUntil = until
		}
		own.signalled = true
		own.head.wake()
	}
}

// Fail tells those who wait for a lock of what somebody else has come to: see [Waiter.Failure]. The heads ask.
func (q *Queues[R, L, E]) Fail(lock string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		own.failure, own.failedAt, own.signalled = err, time.Now(), true
		own.head.wake()
	}
}

// Failure is the last one since the call has joined, or nil.
func (w *Waiter[R, L, E]) Failure() (at time.Time, err error) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if q.failedAt.After(w.since) {
		err = q.failure
	}
	return q.failedAt, err
}

// Head is the first call of a queue when it was found.
type Head[R, E any] struct {
	Wants R // what the call wants
	Entry E // of its queue
}

// Find returns the heads of a lock's queues, whether they wait or ask. It changes nothing.
func (q *Queues[R, L, E]) Find(lock string) []Head[R, E] {
	return q.appendHeads(make([]Head[R, E], 0, 2), lock) // inlined, so that mostly nothing is allocated
}

func (q *Queues[R, L, E]) appendHeads(heads []Head[R, E], lock string) []Head[R, E] {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		heads = append(heads, Head[R, E]{own.head.Wants, own.entry})
	}
	return heads
}

// Choose chooses a head that is to get the lock in memory: one that does not ask Redis, and that fits, by what it wants and the entry
// of its queue. When none does it returns nil; otherwise [Waiter.Give] must follow soon.
func (q *Queues[R, L, E]) Choose(lock string, fits func(R, E) bool) *Waiter[R, L, E] {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if w := own.head; w.stage == ready && fits(w.Wants, own.entry) {
			w.stage = chosen
			return w
		}
	}
	return nil
}

// Give gives the lock to a call that was chosen.
func (w *Waiter[R, L, E]) Give(lock L) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.stage, w.lock = given, lock
	w.wake()
}

// Decline has a call that was given a lock ask Redis for it, for that lock is of no use any more.
func (w *Waiter[R, L, E]) Decline() {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	var none L
	w.stage, w.lock = asking, none
}

// Entry returns the entry by which the head waits in Redis. It outlives the call: the next head
// takes it over. renew decides what it is, by the call and the entry so far.
func (w *Waiter[R, L, E]) Entry(renew func(R, E) E) E {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.entry = renew(w.Wants, q.entry)
	return q.entry
}

// EntryOf returns the entry of calls that go on waiting for a lock that is about to be released. It is the zero value
// when none of them would be notified, or none may have an entry there. renew is as of Entry, for the first of these.
func (q *Queues[R, L, E]) EntryOf(lock string, may func(R) bool, renew func(R, E) E) (entry E) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if own.watched && may(own.head.Wants) { // an entry of calls that are not notified would not last
			own.entry = renew(own.head.Wants, own.entry)
			return own.entry
		}
	}
	return entry
}

// OldestWait tells who waits for a lock.
type OldestWait[R any] struct {
	Wants R // of the call that has waited longest
	Since time.Time
	Calls int
}

// batchSize is how many locks are looked at before others have their turn.
const batchSize = 256

// Locks lists the locks that have queues. It does not keep others from the queues for long.
func (q *Queues[R, L, E]) Locks() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	locks := make([]string, 0, len(q.byLock))
	for lock := range q.byLock {
		locks = append(locks, lock)
		if len(locks)%batchSize == 0 {
			q.mu.Unlock()
			runtime.Gosched()
			q.mu.Lock()
		}
	}
	return locks
}

// Oldest is false when no call waits for the lock.
func (q *Queues[R, L, E]) Oldest(lock string) (found OldestWait[R], ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if first, _ := own.waiting(); first != nil && (!ok || first.since.Before(found.Since)) {
			found, ok = OldestWait[R]{first.Wants, first.since, q.waiting(lock)}, true
		}
	}
	return found, ok
}
