package waitqueue

// A process waits in the queue of processes by a position, which outlives the calls that
// wait: the next head takes it over. It is used up when Redis gives the process the lock.

// WaitBy returns the position by which the head waits, before Redis is told of it. waitBy
// decides what it is, by the call and the position so far, which is returned as old if it
// has to be given up.
func (w *Waiter[R, L, P]) WaitBy(waitBy func(R, P) P) (position, old P) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.waitBy(waitBy)
}

func (q *queue[R, L, P]) waitBy(waitBy func(R, P) P) (position, old P) {
	if position = waitBy(q.head.request, q.position); position != q.position {
		old = q.giveUp()
		q.position = position
	}
	return position, old
}

// Waits returns the position by which calls go on waiting for a lock that is about to be
// released, if there are some that would be notified, or none. The release gives it to the
// process. waitBy is as of WaitBy, for the first of these calls.
func (q *Queues[R, L, P]) Waits(lock string, waitBy func(R, P) P) (position, old P) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if !own.watched {
			continue // or it would not be for long
		}
		position, old = own.waitBy(waitBy)
		own.positioned = true
		break
	}
	return position, old
}

// Granted chooses the call that is to have the lock, which Redis has granted to a position:
// the head of the queue with that position, if it waits and fits, as Next does. Otherwise
// that head asks Redis. known is false when no call waits by that position.
func (q *Queues[R, L, P]) Granted(lock string, is func(P) bool, fits func(R, P) bool) (w *Waiter[R, L, P], known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var none P
	for own := q.byLock[lock]; own != nil; own = own.next {
		if own.position == none || !is(own.position) {
			continue
		}
		if w := own.head; w.canBePassed() && fits(w.request, own.position) {
			w.parked, w.chosen, w.granted = false, true, true
			return w, true
		}
		own.wake()
		return nil, true
	}
	return nil, false
}

// usedUp forgets a position in all queues of the lock. mu is held.
func (q *queue[R, L, P]) usedUp(position P) {
	var none P
	for other := q.all.byLock[q.lock]; other != nil; other = other.next {
		if other.position == position {
			other.position, other.positioned = none, false
		}
	}
}

// giveUp forgets the queue's position, and returns it unless another queue of the lock has
// the same, or Redis knows nothing of it. mu is held.
func (q *queue[R, L, P]) giveUp() P {
	var none P
	old, there := q.position, q.positioned
	q.position, q.positioned = none, false
	for other := q.all.byLock[q.lock]; other != nil; other = other.next {
		if other != q && other.position == old {
			other.positioned = other.positioned || there
			return none
		}
	}
	if !there {
		return none
	}
	return old
}
