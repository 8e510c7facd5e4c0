// Package waitqueue keeps the calls of one process that wait for locks: first come,
// first served. It knows nothing of Redis and starts no goroutine.
//
// A call enters with [Queues.Join]. Only the head of a queue asks Redis; the others wait. [Waiter.Wait] returns when the
// call is head and has reason to ask Redis, when it was given the lock, or when the wait is over. Whoever unlocks a lock in
// this process, or hears that Redis has granted it, can give it to a head in memory: [Queues.Choose] chooses one,
// [Waiter.Give] gives it the lock. A call leaves with [Waiter.Took] or [Waiter.Leave], and
// the next one is head.
//
// A queue also keeps what its heads have learnt of the lock, for the calls behind them: until when it is taken, since when
// Redis has been silent, and the entry by which the queue waits in Redis.
//
// All methods are safe for concurrent use. Only Wait blocks.
package waitqueue

import (
	"cmp"
	"sync"
	"time"
)

// Queues are the wait queues of a process. R is what a call wants, L the lock that it can be given, E what stands for an
// entry of the queue in Redis; its zero value is none. The zero value of Queues is ready.
type Queues[R, L, E any] struct {
	mu     sync.Mutex
	byLock map[string]*queue[R, L, E] // the first of a lock's, of which there is mostly one
	spare  []*queue[R, L, E]          // for the next locks: lone calls that come and go allocate nothing
}

// maxSpare is as many as there are lone calls at a time, mostly.
const maxSpare = 64

// queue is that of one lock. A call with an owner of its own choice has a queue apart:
// it may be able to enter where others have to wait. Queues.mu guards what changes.
type queue[R, L, E any] struct {
	all   *Queues[R, L, E]
	lock  string
	owner string
	next  *queue[R, L, E] // of the same lock

	head, last   *Waiter[R, L, E] // of the calls, in order of arrival; there is one always
	calls        int
	opener       Waiter[R, L, E] // the first call, which is mostly the only one
	joined       bool            // others have come after the first call
	signalled    bool            // the head is to ask
	watched      bool            // notifications are wanted
	entry        E               // by which the queue waits in Redis, or will
	failure      error           // what all who have waited before failedAt may have come to, if they want it
	failedAt     time.Time
	known        Known
	bargingUntil time.Time // those outside the queues go first
}

// Waiter is a call in a queue.
type Waiter[R, L, E any] struct {
	Wants R // what the call wants. It does not change

	queue *queue[R, L, E]
	since time.Time
	first bool          // nobody has asked yet
	news  chan struct{} // there is something to look at; nil until the call waits for that

	// Guarded by Queues.mu.
	before, after *Waiter[R, L, E] // in the queue
	stage         stage
	lock          L     // where given
	err           error // where it was dismissed
}

// Leftover is what nobody wants any more once nobody is left in a queue.
type Leftover[E any] struct {
	Watched bool // of the lock
	Entry   E    // in Redis, unless it is the zero value
}

// Join enters the queue of a lock, for calls without an owner of their own, or with that one. The Waiter is nil when max
// calls wait already, unless max is nil; then by is what is known of the lock.
func (q *Queues[R, L, E]) Join(lock, owner string, request R, max *int) (w *Waiter[R, L, E], by Taken) {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.byLock[lock]
	for own != nil && own.owner != owner {
		own = own.next
	}
	if max != nil && q.byLock[lock] != nil && q.waiting(lock) >= *max {
		return nil, q.byLock[lock].known.Taken
	}
	if own != nil {
		w, own.joined = new(Waiter[R, L, E]), true
	} else {
		if n := len(q.spare); n > 0 {
			own, q.spare = q.spare[n-1], q.spare[:n-1]
		} else {
			own = new(queue[R, L, E])
		}
		own.all, own.lock, own.owner, own.next = q, lock, owner, q.byLock[lock]
		own.known.Answered = owner != "" // a call with an owner of its own choice asks before it joins
		if q.byLock == nil {
			q.byLock = map[string]*queue[R, L, E]{}
		}
		q.byLock[lock] = own
		w = &own.opener
		w.first, w.stage = true, asking
		own.head = w
	}
	w.Wants, w.queue, w.since, w.before = request, own, time.Now(), own.last
	if own.last != nil {
		own.last.after = w
	}
	own.last = w
	own.calls++
	return w, by
}

// isHead says that the call is first. mu is held.
func (w *Waiter[R, L, E]) isHead() bool { return w.queue.head == w }

// remove takes a call out of the queue's order. mu is held.
func (w *Waiter[R, L, E]) remove() {
	q := w.queue
	before, after := &q.head, &q.last
	if w.before != nil {
		before = &w.before.after
	}
	if w.after != nil {
		after = &w.after.before
	}
	*before, *after = w.after, w.before
	w.before, w.after = nil, nil
	q.calls--
}

// waiting are the calls that wait, without one that has come first and has no answer yet. mu is held.
func (q *queue[R, L, E]) waiting() (first *Waiter[R, L, E], calls int) {
	if q.known.Answered {
		return q.head, q.calls
	}
	return q.head.after, q.calls - 1
}

// waiting counts the calls that wait for a lock. mu is held.
func (q *Queues[R, L, E]) waiting(lock string) (n int) {
	for own := q.byLock[lock]; own != nil; own = own.next {
		_, calls := own.waiting()
		n += calls
	}
	return n
}

// Took ends the wait of a call that has the lock. The next one is head, and need not ask at once.
func (w *Waiter[R, L, E]) Took(taken Taken) Leftover[E] {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.known = Known{Answered: true, Local: true, Taken: taken}
	return w.leave()
}

// Leave ends the wait of a call that has no lock. The next one is head, and asks at once.
func (w *Waiter[R, L, E]) Leave() Leftover[E] {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.signalled = q.signalled || w.isHead()
	return w.leave()
}

// leave takes the call out. mu is held.
func (w *Waiter[R, L, E]) leave() Leftover[E] {
	q := w.queue
	if w.stage == refused {
		return Leftover[E]{} // it was taken out
	}
	wasHead := w.isHead()
	w.remove()
	next := q.head
	switch {
	case !wasHead:
		return Leftover[E]{}
	case next == nil:
		return q.end()
	case next.stage == behind:
		next.stage = ready // it can be given the lock before it has noticed
	}
	next.wake()
	return Leftover[E]{}
}

// Dismiss is Leave, and ends the wait of those behind the head with an error that it is for, by what they want and since when.
func (w *Waiter[R, L, E]) Dismiss(err error, isFor func(R, time.Time) bool) Leftover[E] {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	for other := q.head.after; other != nil; {
		next := other.after
		if isFor(other.Wants, other.since) {
			other.refuse(err)
		}
		other = next
	}
	q.signalled = true
	return w.leave()
}

// refuse takes a call out, and ends its wait. mu is held.
func (w *Waiter[R, L, E]) refuse(err error) {
	w.remove()
	w.stage, w.err = refused, err
	w.wake()
}

// end takes a queue out. The first call does not use it any more. mu is held.
func (q *queue[R, L, E]) end() Leftover[E] {
	all, left := q.all, Leftover[E]{Watched: q.watched, Entry: q.entry}
	rest := all.byLock[q.lock]
	place := &rest
	for *place != q {
		place = &(*place).next
	}
	*place = q.next
	if rest == nil {
		delete(all.byLock, q.lock)
	} else {
		all.byLock[q.lock] = rest
	}
	if !q.joined && len(all.spare) < maxSpare {
		*q = queue[R, L, E]{}
		all.spare = append(all.spare, q)
	}
	return left
}

// Busy notes the answer that the lock is taken. watch is true when notifications are wanted from now on. The head waits as
// well from its first answer on: if that is one more than max, unless nil, the last in the queue is refused. isOneTooMany says that this
// is the head itself, which must leave.
func (w *Waiter[R, L, E]) Busy(taken Taken, max *int) (watch, isOneTooMany bool) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if !q.known.Answered && max != nil && q.all.waiting(q.lock) >= *max {
		if isOneTooMany = q.last == w; !isOneTooMany {
			q.last.refuse(nil)
		}
	}
	q.known = Known{Answered: true, Taken: taken}
	watch = !q.watched && !isOneTooMany
	q.watched = q.watched || watch
	return watch, isOneTooMany
}

// NeedsWatch says that calls wait for the lock, and that no notifications are wanted yet.
func (q *Queues[R, L, E]) NeedsWatch(lock string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.byLock[lock]
	return own != nil && !own.watched
}

// Watch is true when notifications are wanted from now on, because calls wait for the lock:
// somebody outside the queues wants it as well.
func (q *Queues[R, L, E]) Watch(lock string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.byLock[lock]
	if own == nil || own.watched {
		return false
	}
	own.watched = true
	return true
}

// Silent notes that a question, asked at a time, has failed, and why unless that is nil. It returns what is known of the lock.
func (w *Waiter[R, L, E]) Silent(asked time.Time, why error) Known {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if q.known.Silence.IsZero() {
		q.known.Silence = asked
	}
	q.known.Failure = cmp.Or(why, q.known.Failure)
	return q.known
}
