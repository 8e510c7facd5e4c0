package waitqueue

// A queue waits in Redis by a position, which outlives the calls that wait: the next head
// takes it over.

// Position returns the position by which the head waits. renew decides what it is, by the
// call and the position so far.
func (w *Waiter[R, L, P]) Position(renew func(R, P) P) P {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.renew(renew)
}

func (q *queue[R, L, P]) renew(renew func(R, P) P) P {
	q.position = renew(q.head.Request, q.position)
	return q.position
}

// Waits returns the position by which calls go on waiting for a lock that is about to be
// released, the zero value when there are none that would be notified. renew is as of
// Position, for the first of these calls.
func (q *Queues[R, L, P]) Waits(lock string, renew func(R, P) P) (position P) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if own.watched { // or it would not be for long
			return own.renew(renew)
		}
	}
	return position
}
