package waitqueue

import (
	"context"
	"time"
)

// Ended is why a wait has ended.
type Ended int

const (
	Ask     Ended = iota // the call is head, and has reason to ask Redis
	Head                 // the call has become head: others of this process have the lock
	Given                // the call was passed the lock
	Refused              // by another call; see [Waiter.Err]
	Done                 // the context has ended
	Over                 // the wait is over
	Closing
)

// Wait waits until the call is head; if it is, until there is reason to ask Redis: the lock
// may be free, or the delay is over. From the first wait as head on the call can be passed
// the lock. A lock that arrives at the very end is given. After Done, Over and Closing the
// call can not be passed the lock any more, and must leave.
func (w *Waiter[R, L, P]) Wait(ctx context.Context, delay time.Duration, over <-chan time.Time, closing <-chan struct{}) (ended Ended, lock L) {
	var head, signal <-chan struct{}
	var timer <-chan time.Time
	var passed <-chan L
	if w.isHead != nil && !w.knows {
		head = w.isHead
	} else {
		signal = w.park()
		passed = w.passed
		timer = time.After(max(delay, w.openFor()))
	}
	for {
		select {
		case <-head:
			if w.err != nil {
				return Refused, lock
			}
			w.knows = true
			ended = Head
		case lock = <-passed:
			return Given, lock
		case <-signal:
			if open := w.openFor(); open > 0 { // others go first
				signal, timer = nil, time.After(open)
				continue
			}
			ended = Ask
		case <-timer:
			ended = Ask
		case <-ctx.Done():
			ended = Done
		case <-over:
			ended = Over
		case <-closing:
			ended = Closing
		}
		if ended == Ask { // there may be several reasons, and asking takes long in an outage
			select {
			case <-over:
				ended = Over
			default:
			}
		}
		if ended != Head && w.unpark(ended != Ask) {
			return Given, <-w.passed
		}
		return ended, lock
	}
}

// park says that the head waits: from now on it can be passed the lock. It returns what
// receives when the lock may be free.
func (w *Waiter[R, L, P]) park() <-chan struct{} {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	w.canPark()
	if q.signal == nil {
		q.signal = make(chan struct{}, 1)
		if q.signalled {
			q.wake()
		}
	}
	return q.signal
}

// canPark: mu is held.
func (w *Waiter[R, L, P]) canPark() {
	w.parked = true
	if w.passed == nil {
		w.passed = make(chan L, 1)
	}
}

// unpark ends that, for ever when the call leaves. It is true when the call was chosen
// meanwhile: the lock is about to arrive.
func (w *Waiter[R, L, P]) unpark(leaves bool) (chosen bool) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.parked, w.leaves = false, leaves
	return w.chosen
}

// openFor is for how long those outside the queue go first.
func (w *Waiter[R, L, P]) openFor() time.Duration {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return time.Until(w.queue.openUntil)
}

// Open has the heads of a lock's queues ask for it after so long: those outside the queues
// go first.
func (q *Queues[R, L, P]) Open(lock string, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if until := time.Now().Add(d); until.After(own.openUntil) {
			own.openUntil = until
		}
		own.wake()
	}
}

// Signal has the heads of a lock's queues ask for it: it may be free.
func (q *Queues[R, L, P]) Signal(lock string) { q.Open(lock, 0) }

// wake signals. mu is held.
func (q *queue[R, L, P]) wake() {
	if q.signal == nil {
		q.signalled = true
		return
	}
	select {
	case q.signal <- struct{}{}:
	default:
	}
}
