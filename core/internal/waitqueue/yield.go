package waitqueue

import "time"

// Processes that wait for a lock have a queue of their own, in Redis. A release notifies
// only the first of them, for which the lock is reserved for a moment: what it costs to
// pass a lock from process to process does not depend on how many of them wait.
//
// Calls outside that queue, those of a Redisson client, hear of a lock that is free for
// all. A process that could go on for ever lets them go first so often:
const (
	yieldEvery = 50 * time.Millisecond
	yieldTime  = 3 * time.Millisecond
)

// Waits says whether calls wait for a lock and would hear that it is reserved for them.
// The process is taken to have a position in the queue of processes then, which a release
// gives it.
func (q *Queues[R, L]) Waits(lock string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if own.watched { // or it would not be for long
			own.positioned = true
			return true
		}
	}
	return false
}

// Yield lets others go first, unless it did so not long ago.
func (q *Queues[R, L]) Yield(lock string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if now := time.Now(); now.Sub(own.yieldUntil) >= yieldEvery {
			own.yieldUntil = now.Add(yieldTime)
		}
	}
}

// Granted has the heads of a lock's queues ask for it, after letting others go first for
// so long. It is false when nobody waits.
func (q *Queues[R, L]) Granted(lock string, yield time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if yield > 0 {
			own.yieldUntil = time.Now().Add(yield)
		}
		own.wake()
	}
	return q.byLock[lock] != nil
}

// Yields is for how long the head has to let others go first.
func (w *Waiter[R, L]) Yields() time.Duration {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	if w.queue.yieldUntil.IsZero() {
		return 0
	}
	return max(time.Until(w.queue.yieldUntil), 0)
}
