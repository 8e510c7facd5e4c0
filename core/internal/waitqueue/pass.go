package waitqueue

// Next chooses the call that is to be passed the lock: the head of the queue of calls
// without an owner of their own, if it waits and what it wants fits. It is nil when there
// is none; otherwise [Waiter.Pass] must follow soon.
func (q *Queues[R, L, P]) Next(lock string, fits func(R) bool) *Waiter[R, L, P] {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.find(lock, "")
	if own == nil || !own.head.canBePassed() || !fits(own.head.request) {
		return nil
	}
	own.head.choose()
	return own.head
}

// Granted chooses the call that is to have the lock, which Redis has granted to a position:
// the head of the queue with that position, if it waits and fits, as Next does. Otherwise
// that head asks Redis.
func (q *Queues[R, L, P]) Granted(lock string, is func(P) bool, fits func(R, P) bool) *Waiter[R, L, P] {
	q.mu.Lock()
	defer q.mu.Unlock()
	var none P
	for own := q.byLock[lock]; own != nil; own = own.next {
		if own.position == none || !is(own.position) {
			continue
		}
		if w := own.head; w.canBePassed() && fits(w.request, own.position) {
			w.choose()
			own.position = none
			return w
		}
		own.wake()
		return nil
	}
	return nil
}

// canBePassed: mu is held.
func (w *Waiter[R, L, P]) canBePassed() bool { return w.parked && !w.chosen && !w.leaves }

// choose: mu is held.
func (w *Waiter[R, L, P]) choose() { w.parked, w.chosen = false, true }

// Request is what the call wants.
func (w *Waiter[R, L, P]) Request() R { return w.request }

// Pass hands the lock to a call that was chosen.
func (w *Waiter[R, L, P]) Pass(lock L) { w.passed <- lock }
