package waitqueue

import "time"

// Processes that wait for a lock have a queue of their own, in Redis. A release grants the
// lock to the first of them, or reserves it, and notifies that one only: what it costs to
// pass a lock from process to process does not depend on how many of them wait.
//
// Calls outside that queue, those of a Redisson client, hear of a lock that is free for
// all. A process that could go on for ever lets them go first so often:
const (
	yieldEvery = 50 * time.Millisecond
	yieldTime  = 3 * time.Millisecond
)

// Yield lets others go first, unless it did so not long ago.
func (q *Queues[R, L, P]) Yield(lock string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if now := time.Now(); now.Sub(own.yieldUntil) >= yieldEvery {
			own.yieldUntil = now.Add(yieldTime)
		}
	}
}

// Reserved has the heads of a lock's queues ask for it, after letting others go first for
// so long. It is false when nobody waits.
func (q *Queues[R, L, P]) Reserved(lock string, yield time.Duration) bool {
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
func (w *Waiter[R, L, P]) Yields() time.Duration {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return max(time.Until(w.queue.yieldUntil), 0)
}
