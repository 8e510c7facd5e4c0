package waitqueue

import (
	"runtime"
	"time"
)

// Wait tells who waits for a lock.
type Wait[R any] struct {
	Request R // of the call that has waited longest
	Since   time.Time
	Calls   int
}

// pieceOf is how many locks are looked at before others have their turn.
const pieceOf = 256

// Locks lists the locks that have queues. It does not keep others from the queues for long.
func (q *Queues[R, L, E]) Locks() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	locks := make([]string, 0, len(q.byLock))
	for lock := range q.byLock {
		locks = append(locks, lock)
		if len(locks)%pieceOf == 0 {
			q.mu.Unlock()
			runtime.Gosched()
			q.mu.Lock()
		}
	}
	return locks
}

// WaitFor is false when no call waits for the lock.
func (q *Queues[R, L, E]) WaitFor(lock string) (found Wait[R], ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if calls := own.waiting(); len(calls) > 0 && (!ok || calls[0].since.Before(found.Since)) {
			found, ok = Wait[R]{calls[0].Request, calls[0].since, q.waiting(lock)}, true
		}
	}
	return found, ok
}
