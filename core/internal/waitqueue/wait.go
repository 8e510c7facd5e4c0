package waitqueue

import (
	"context"
	"time"
)

// Ended is why a wait has ended.
type Ended int

const (
	Ask     Ended = iota // the call is head, and has reason to ask Redis
	Given                // the call was given the lock
	Refused              // by another call
	Done                 // the context has ended
	Over                 // the wait is over
	Closing
)

// Result is what a wait has come to.
type Result[L any] struct {
	Ended Ended
	Lock  L     // where Given
	Err   error // where Refused
	State State // when the call does not want the lock any more
}

// stage is how far a call has come.
type stage int

const (
	asks   stage = iota // it is behind others, or asks Redis
	waits               // as head: it can be given the lock
	chosen              // it is being given the lock
	leaves              // it does not want the lock any more
)

// Wait waits until the call is head, and then until there is reason to ask Redis: the lock
// may be free, or the delay is over, which is asked for when the call begins to wait as head.
// Who has opened the queue asks at once. While it waits as head, the call can be given the
// lock. A lock that arrives at the very end is given. After Done, Over and Closing the
// call can not get the lock any more, and must leave.
func (w *Waiter[R, L, P]) Wait(ctx context.Context, delay func(State) time.Duration, over <-chan time.Time, closing <-chan struct{}) Result[L] {
	if w.first {
		w.first = false
		return Result[L]{Ended: Ask}
	}
	var signal <-chan struct{}
	var timer <-chan time.Time
	var passed <-chan L
	for {
		if w.isHead == nil && timer == nil {
			signal, timer, passed = w.park(delay)
		}
		var ended Ended
		select {
		case <-w.isHead:
			if w.err != nil {
				return Result[L]{Ended: Refused, Err: w.err}
			}
			w.isHead = nil
			continue
		case lock := <-passed:
			return Result[L]{Ended: Given, Lock: lock}
		case <-signal:
			if open := w.openFor(); open > 0 { // others go first
				timer = time.After(open)
				continue
			}
		case <-timer:
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
		known, given := w.unpark(ended != Ask)
		if given { // the lock is about to arrive
			return Result[L]{Ended: Given, Lock: <-w.passed}
		}
		return Result[L]{Ended: ended, State: known}
	}
}

// park says that the head waits. It returns what receives when the lock may be free, when the
// delay is over, and when the call is given the lock.
func (w *Waiter[R, L, P]) park(delay func(State) time.Duration) (<-chan struct{}, <-chan time.Time, <-chan L) {
	q := w.queue
	q.all.mu.Lock()
	w.wait()
	signal, known := q.signals(), q.state
	q.all.mu.Unlock()
	return signal, time.After(max(delay(known), w.openFor())), w.passed
}

// wait has the head wait, unless it was chosen or leaves. mu is held.
func (w *Waiter[R, L, P]) wait() {
	if w.stage == asks {
		w.stage = waits
	}
	if w.passed == nil {
		w.passed = make(chan L, 1)
	}
}

// unpark ends that, for ever when the call leaves, unless it was chosen meanwhile.
func (w *Waiter[R, L, P]) unpark(ends bool) (known State, given bool) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	switch {
	case w.stage == chosen:
		return known, true
	case ends:
		w.stage = leaves
	default:
		w.stage = asks
	}
	return w.queue.state, false
}

// openFor is for how long those outside the queue go first.
func (w *Waiter[R, L, P]) openFor() time.Duration {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return time.Until(w.queue.openUntil)
}

// Signal has the heads of a lock's queues ask for it, which may be free. For so long those
// outside the queues go first.
func (q *Queues[R, L, P]) Signal(lock string, open time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if until := time.Now().Add(open); until.After(own.openUntil) {
			own.openUntil = until
		}
		own.wake()
	}
}

// wake signals. mu is held.
func (q *queue[R, L, P]) wake() {
	select {
	case q.signals() <- struct{}{}:
	default:
	}
}

// signals is what wake sends to. mu is held.
func (q *queue[R, L, P]) signals() chan struct{} {
	if q.signal == nil {
		q.signal = make(chan struct{}, 1)
	}
	return q.signal
}

// Choose chooses the call that is to get the lock in memory: the head of a queue, if it waits and
// the lock fits what the call wants and the entry of its queue. It is nil when there is
// none; otherwise [Waiter.HandOff] must follow soon. fits is called for heads that do not wait, too.
func (q *Queues[R, L, P]) Choose(lock string, fits func(R, P) bool) *Waiter[R, L, P] {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if w := own.head; fits(w.Request, own.entry) && w.stage == waits {
			w.stage = chosen
			return w
		}
	}
	return nil
}

// HandOff gives the lock to a call that was chosen.
func (w *Waiter[R, L, P]) HandOff(lock L) { w.passed <- lock }

// Entry returns the entry by which the head waits in Redis. It outlives the call: the next head
// takes it over. renew decides what it is, by the call and the entry so far.
func (w *Waiter[R, L, P]) Entry(renew func(R, P) P) P {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.renew(renew)
}

func (q *queue[R, L, P]) renew(renew func(R, P) P) P {
	q.entry = renew(q.head.Request, q.entry)
	return q.entry
}

// EntryOf returns the entry of calls that go on waiting for a lock that is about to be
// released, the zero value when there are none that would be notified. renew is as of
// Entry, for the first of these calls.
func (q *Queues[R, L, P]) EntryOf(lock string, renew func(R, P) P) (entry P) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if own.watched { // or it would not be for long
			return own.renew(renew)
		}
	}
	return entry
}
