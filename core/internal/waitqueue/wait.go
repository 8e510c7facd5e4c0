package waitqueue

import (
	"context"
	"time"
)

// Ended is why a wait has ended.
type Ended int

const (
	not  Ended = iota // it has not
	Ask               // the call is head, and has reason to ask Redis
	Done              // the context has ended
	Over              // the wait is over
	Closing
	Given   // the call was given the lock
	Refused // by another call
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
	asks    stage = iota // it is behind others, or asks Redis
	waits                // as head: it can be given the lock
	chosen               // it is being given the lock
	given                // it has it
	refused              // another call has taken it out of the queue
	leaves               // it does not want the lock any more
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
	done := ctx.Done()
	var timer <-chan time.Time // nil: the call is not head, or has not noticed
	for why := not; ; {
		if why <= Ask { // there may be several reasons, and asking takes long in an outage
			select {
			case <-over:
				why = Over
			default:
			}
		}
		r, now, open := w.look(why)
		switch {
		case r.Ended != not:
			return r
		case now == chosen: // the lock is about to arrive
			done, timer, over, closing = nil, nil, nil, nil
		case open > 0:
			timer = time.After(open)
		case now == waits && timer == nil:
			timer = time.After(delay(r.State))
		}
		why = not
		select {
		case <-w.news:
		case <-timer:
			why = Ask
		case <-done:
			why = Done
		case <-over:
			why = Over
		case <-closing:
			why = Closing
		}
	}
}

// Waited is for how long the call has been in the queue. It is false while the next Wait does not wait.
func (w *Waiter[R, L, P]) Waited() (time.Duration, bool) {
	if w.first {
		return 0, false
	}
	return time.Since(w.since), true
}

// look says how the wait ends, for a reason, if it does. Otherwise the head waits: with open, for as long as
// those outside the queues go first.
func (w *Waiter[R, L, P]) look(why Ended) (r Result[L], now stage, open time.Duration) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if w.isHead() && q.signalled {
		if open = time.Until(q.openUntil); open <= 0 && why == not {
			why = Ask
		}
	}
	r = Result[L]{Lock: w.lock, Err: w.err, State: q.state}
	switch {
	case w.stage == refused:
		r.Ended = Refused
	case w.stage == given:
		r.Ended = Given
	case w.stage == chosen:
	case why > Ask:
		r.Ended, w.stage = why, leaves
	case !w.isHead():
	case why == Ask:
		r.Ended, w.stage, q.signalled = Ask, asks, false
	default:
		w.stage = waits
	}
	if w.news == nil {
		w.news = make(chan struct{}, 1)
	}
	return r, w.stage, open
}

// wake has the call look. mu is held.
func (w *Waiter[R, L, P]) wake() {
	select {
	case w.news <- struct{}{}:
	default:
	}
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
		own.signalled = true
		own.calls[0].wake()
	}
}

// Choose chooses the call that is to get the lock in memory: the head of a queue, if it waits and
// the lock fits what the call wants and the entry of its queue. It is nil when there is
// none; otherwise [Waiter.HandOff] must follow soon. fits is called for heads that do not wait, too.
func (q *Queues[R, L, P]) Choose(lock string, fits func(R, P) bool) *Waiter[R, L, P] {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if w := own.calls[0]; fits(w.Request, own.entry) && w.stage == waits {
			w.stage = chosen
			return w
		}
	}
	return nil
}

// HandOff gives the lock to a call that was chosen.
func (w *Waiter[R, L, P]) HandOff(lock L) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.stage, w.lock = given, lock
	w.wake()
}

// Entry returns the entry by which the head waits in Redis. It outlives the call: the next head
// takes it over. renew decides what it is, by the call and the entry so far.
func (w *Waiter[R, L, P]) Entry(renew func(R, P) P) P {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.entry = renew(w.Request, q.entry)
	return q.entry
}

// EntryOf returns the entry of calls that go on waiting for a lock that is about to be
// released, the zero value when there are none that would be notified, or none that may have one there. renew is as
// of Entry, for the first of these calls.
func (q *Queues[R, L, P]) EntryOf(lock string, may func(R) bool, renew func(R, P) P) (entry P) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		if own.watched && may(own.calls[0].Request) { // or it would not be for long
			own.entry = renew(own.calls[0].Request, own.entry)
			return own.entry
		}
	}
	return entry
}
