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
	own.head.parked, own.head.chosen = false, true
	return own.head
}

// canBePassed: mu is held.
func (w *Waiter[R, L, P]) canBePassed() bool { return w.parked && !w.chosen && !w.leaves }

// Request is what the call wants.
func (w *Waiter[R, L, P]) Request() R { return w.request }

// Pass hands the lock to a call that Next has chosen.
func (w *Waiter[R, L, P]) Pass(lock L) { w.passed <- lock }

// Park says that the head waits: from now on it can be passed the lock.
func (w *Waiter[R, L, P]) Park() {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.park()
}

func (w *Waiter[R, L, P]) park() {
	w.parked = true
	if w.passed == nil {
		w.passed = make(chan L, 1)
	}
}

// Unpark ends that. It is false when the head was chosen meanwhile: the lock is about to
// arrive by Passed.
func (w *Waiter[R, L, P]) Unpark() bool {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.parked = false
	return !w.chosen
}

// Passed receives the lock that the head is passed. It is for a head that was parked.
func (w *Waiter[R, L, P]) Passed() <-chan L { return w.passed }

// Refuse says that the call does not want the lock any more. It is false when the lock is
// about to arrive nevertheless, by Passed.
func (w *Waiter[R, L, P]) Refuse() bool {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.leaves = true
	return !w.chosen
}
