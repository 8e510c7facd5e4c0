package waitqueue

import (
	"sync"
	"time"
)

// Queues are the wait queues of a process. R is what a call wants, L the lock that it can
// be passed. The zero value is ready.
type Queues[R, L any] struct {
	mu     sync.Mutex
	byLock map[string]*queue[R, L] // the first of a lock's, of which there is mostly one
}

// queue is that of one lock. A call with an owner of its own choice has a queue apart:
// it may be able to enter where others have to wait.
type queue[R, L any] struct {
	all   *Queues[R, L]
	lock  string
	owner string

	// Guarded by Queues.mu.
	head, tail *Waiter[R, L]
	calls      int
	signal     chan struct{} // nil: nobody waits for it yet
	signalled  bool          // before there was a channel
	next       *queue[R, L]  // of the same lock
	opener     Waiter[R, L]  // room for the first call: most are alone
	trying     bool          // the first of the queue has not had an answer yet
	watched    bool          // notifications are wanted
	positioned bool          // the process has a position in the queue of processes
	state      State
	yieldUntil time.Time // others go first
}

// State is what is known about a lock that is waited for.
type State struct {
	Answered bool      // Redis has answered once
	Local    bool      // the last we know is that this process holds the lock
	Silence  time.Time // since when no attempt has been answered; zero: the last one was
	Until    time.Time // when it is free at the latest; zero: it has no end
	Exact    bool      // nothing will postpone Until
}

// Waiter is the position of a call in a queue.
type Waiter[R, L any] struct {
	queue   *queue[R, L]
	request R
	isHead  chan struct{} // nil for the first
	since   time.Time
	err     error

	// Guarded by Queues.mu.
	prev, next *Waiter[R, L]
	parked     bool   // it waits as head
	chosen     bool   // it is being passed the lock
	leaves     bool   // it does not want the lock any more
	passed     chan L // nil: it was never head
}

// End says what is not wanted any more once nobody is left in a queue.
type End struct {
	Notifications bool // of the lock
	Position      bool // of the process in the queue of processes
}

// Join enters the queue of a lock, for calls without an owner of their own, or with that
// one. It is false when max calls wait already, unless max is nil: then the Waiter serves
// to ask for the State only.
func (q *Queues[R, L]) Join(lock, owner string, request R, max *int) (*Waiter[R, L], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.find(lock, owner)
	// With an owner of its own choice the call has tried once already.
	trying := own == nil && owner == ""
	if max != nil && !trying && q.waiting(lock) >= *max {
		return &Waiter[R, L]{queue: q.byLock[lock]}, false
	}
	if own != nil {
		w := &Waiter[R, L]{queue: own, request: request, since: time.Now(), isHead: make(chan struct{})}
		own.push(w)
		return w, true
	}
	own = &queue[R, L]{all: q, lock: lock, owner: owner, trying: trying, next: q.byLock[lock]}
	if q.byLock == nil {
		q.byLock = map[string]*queue[R, L]{}
	}
	q.byLock[lock] = own
	w := &own.opener
	w.queue, w.request, w.since = own, request, time.Now()
	own.push(w)
	return w, true
}

func (q *Queues[R, L]) find(lock, owner string) *queue[R, L] {
	for own := q.byLock[lock]; own != nil; own = own.next {
		if own.owner == owner {
			return own
		}
	}
	return nil
}

// push puts a call at the end. mu is held.
func (q *queue[R, L]) push(w *Waiter[R, L]) {
	if w.prev = q.tail; w.prev != nil {
		w.prev.next = w
	} else {
		q.head = w
	}
	q.tail = w
	q.calls++
}

// remove takes a call out, wherever it is. mu is held.
func (q *queue[R, L]) remove(w *Waiter[R, L]) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.tail = w.prev
	}
	w.prev, w.next = nil, nil
	q.calls--
}

// waiting counts the calls that wait, without one that has just come first.
func (q *Queues[R, L]) waiting(lock string) int {
	n := 0
	for own := q.byLock[lock]; own != nil; own = own.next {
		n += own.calls
		if own.trying {
			n--
		}
	}
	return n
}

// Signal has the heads of a lock's queues ask for it: it may be free.
func (q *Queues[R, L]) Signal(lock string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for own := q.byLock[lock]; own != nil; own = own.next {
		own.wake()
	}
}

// wake signals. mu is held.
func (q *queue[R, L]) wake() {
	if q.signal == nil {
		q.signalled = true
		return
	}
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// First says that the call opened the queue: it is head, and nobody has asked yet.
func (w *Waiter[R, L]) First() bool { return w.isHead == nil }

// IsHead is closed when the call has become head, or was refused: see Err.
func (w *Waiter[R, L]) IsHead() <-chan struct{} { return w.isHead }

// Err is why the call was refused, by another's Dismiss or Busy; nil if it was not. To be
// asked after IsHead.
func (w *Waiter[R, L]) Err() error { return w.err }

// Signal receives when the lock may be free. It is for the head.
func (w *Waiter[R, L]) Signal() <-chan struct{} {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if q.signal == nil {
		q.signal = make(chan struct{}, 1)
		if q.signalled {
			q.wake()
		}
	}
	return q.signal
}

// State returns what is known about the lock.
func (w *Waiter[R, L]) State() State {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.state
}

// Took ends the wait of a call that has the lock, until then. The next one is head, and
// need not ask at once.
func (w *Waiter[R, L]) Took(until time.Time, exact bool) End {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if !w.chosen { // Redis gave it the lock
		for other := q.all.byLock[q.lock]; other != nil; other = other.next {
			other.positioned = false // it was used up
		}
	}
	q.state = State{Answered: true, Local: true, Until: until, Exact: exact}
	return w.leave()
}

// Leave ends the wait of a call that has no lock. The next one is head, and asks at once.
// What [Waiter.Refuse] says comes first.
func (w *Waiter[R, L]) Leave() End {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if q.head == w {
		q.wake()
	}
	return w.leave()
}

// leave gives the position up. mu is held.
func (w *Waiter[R, L]) leave() End {
	q := w.queue
	if w.err != nil {
		return End{} // it was taken out
	}
	head := q.head == w
	q.remove(w)
	if q.head == nil {
		return q.end()
	}
	if head {
		q.trying = false
		q.head.park() // it can be passed the lock before it has noticed
		close(q.head.isHead)
	}
	return End{}
}

// Dismiss ends the wait of all calls of the queue with an error.
func (w *Waiter[R, L]) Dismiss(err error) End {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	for other := q.head; other != nil; other = other.next {
		other.err = err
		if other != q.head {
			close(other.isHead)
		}
	}
	return q.end()
}

// end takes a queue out. mu is held.
func (q *queue[R, L]) end() End {
	rest := q.all.byLock[q.lock]
	if rest == q {
		rest = q.next
	} else {
		before := rest
		for before.next != q {
			before = before.next
		}
		before.next = q.next
	}
	if rest == nil {
		delete(q.all.byLock, q.lock)
	} else {
		q.all.byLock[q.lock] = rest
	}
	if q.positioned && rest != nil {
		rest.positioned, q.positioned = true, false
	}
	return End{Notifications: q.watched, Position: q.positioned}
}

// Busy notes the answer that somebody else holds the lock, until then. watch is true
// when notifications are wanted from now on. The head waits as well from its first
// answer on: if that is one more than max, unless nil, the last in the queue is refused.
func (w *Waiter[R, L]) Busy(until time.Time, exact bool, max *int, refusal error) (watch bool) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if q.trying && max != nil && q.calls > *max {
		last := q.tail
		q.remove(last)
		last.err = refusal
		close(last.isHead)
	}
	q.trying, q.positioned = false, true
	q.state = State{Answered: true, Until: until, Exact: exact}
	watch = !q.watched
	q.watched = true
	return watch
}

// Silent notes that an attempt, made at a time, has failed, and returns since when all
// have.
func (w *Waiter[R, L]) Silent(asked time.Time) (since time.Time) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if q.state.Silence.IsZero() {
		q.state.Silence = asked
	}
	return q.state.Silence
}
