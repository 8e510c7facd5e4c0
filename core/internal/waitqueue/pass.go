package waitqueue

// Choose chooses the call that is to be passed the lock: the head of a queue, if it waits and
// the lock fits, by what the call wants and the position of its queue. It is nil when there is
// none; otherwise [Waiter.Pass] must follow soon. Heads that do not wait are asked about, too.
func (q *Queues[R, L, P]) Choose(lock string, fits func(R, P) bool) *Waiter[R, L, P] {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if w := own.head; fits(w.Request, own.position) && w.stage == waits {
			w.stage = chosen
			return w
		}
	}
	return nil
}

// Pass hands the lock to a call that was chosen.
func (w *Waiter[R, L, P]) Pass(lock L) { w.passed <- lock }
