package core

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// lines are the queues of calls that wait for locks, first come first served
// inside this process. Only the head of a line speaks with Redis.
type lines struct {
	mu     sync.Mutex
	byLock map[string][]*line
}

// line is the queue for one lock. A call with an owner of its own choice stands
// in a line apart: it may be able to enter where others have to wait.
type line struct {
	lines  *lines
	lock   string
	owner  string
	signal chan struct{} // the lock may be free; for the head

	// Guarded by lines.mu.
	members  list.List
	trying   bool      // the first of the line has not had an answer yet
	answered bool      // Redis has answered once
	local    bool      // the last we know is that this process holds the lock
	watched  bool      // wake-ups are wanted
	inLine   bool      // this process stands in the line of processes
	silence  time.Time // since when no attempt has been answered; zero: the last one was
	until    time.Time
	exact    bool // nothing will postpone until

	ours      moment    // since when this process has the lock
	handovers int       // since then
	restUntil time.Time // others go first
}

// waiter is a place in a line.
type waiter struct {
	line  *line
	place *list.Element
	turn  chan struct{} // closed when it is the head, or refused; nil for the first
	first bool          // it opened the line
	since moment
	err   error // why it was refused

	// For the lock to be handed over by its holder. Guarded by lines.mu.
	request *request
	ctx     context.Context
	parked  bool       // it waits as head
	offered bool       // the lock is on its way
	given   bool       // it has arrived
	gone    bool       // it does not want it any more
	gift    chan *Lock // nil: the offer came to nothing
}

// join enters the line for a lock. It is false when max calls wait already.
func (ls *lines) join(ctx context.Context, r *request) (*waiter, bool) {
	lock, owner, max := r.names.lock, r.owner, r.settings.maxWaiters
	ls.mu.Lock()
	defer ls.mu.Unlock()
	now := thisMoment()
	ln := ls.find(lock, owner)
	// With an owner of its own choice the call has tried once already.
	trying := ln == nil && owner == ""
	if max != nil && !trying && ls.waiting(lock) >= *max {
		return &waiter{line: ls.byLock[lock][0]}, false
	}
	if ln == nil {
		ln = &line{lines: ls, lock: lock, owner: owner, signal: make(chan struct{}, 1), trying: trying, ours: now}
		if ls.byLock == nil {
			ls.byLock = map[string][]*line{}
		}
		ls.byLock[lock] = append(ls.byLock[lock], ln)
	}
	w := &waiter{line: ln, first: ln.members.Len() == 0, since: now, request: r, ctx: ctx}
	if !w.first {
		w.turn = make(chan struct{})
	}
	w.place = ln.members.PushBack(w)
	return w, true
}

func (ls *lines) find(lock, owner string) *line {
	for _, ln := range ls.byLock[lock] {
		if ln.owner == owner {
			return ln
		}
	}
	return nil
}

// waiting counts the calls that wait, without one that has just come first.
func (ls *lines) waiting(lock string) int {
	n := 0
	for _, ln := range ls.byLock[lock] {
		n += ln.members.Len()
		if ln.trying {
			n--
		}
	}
	return n
}

// signal tells the heads of a lock's lines that it may be free.
func (ls *lines) signal(lock string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, ln := range ls.byLock[lock] {
		ln.wake()
	}
}

func (ln *line) wake() {
	select {
	case ln.signal <- struct{}{}:
	default:
	}
}

// leave gives the place up and lets the next one be head. The next one tries at
// once unless the lock was just taken by the one that leaves.
func (ln *line) leave(w *waiter, took *Lock) (end lineEnd) {
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	if w.err != nil {
		return end // all were sent away
	}
	if took != nil {
		ln.lines.arrived(ln.lock)
	}
	head := ln.members.Front() == w.place
	ln.members.Remove(w.place)
	if head {
		ln.trying = false
		if took != nil {
			if !w.given {
				ln.ours, ln.handovers = thisMoment(), 0
			}
			ln.answered, ln.local, ln.silence = true, true, time.Time{}
			ln.until, ln.exact = took.lease.end(), took.lease.fixed
		} else {
			ln.wake()
		}
		if next := ln.members.Front(); next != nil {
			w := next.Value.(*waiter)
			w.park() // it can be offered the lock before it has noticed
			close(w.turn)
		}
	}
	if ln.members.Len() == 0 {
		return ln.remove()
	}
	return end
}

// dismiss ends the line with an error for everybody in it.
func (ln *line) dismiss(err error) lineEnd {
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	for e := ln.members.Front(); e != nil; e = e.Next() {
		w := e.Value.(*waiter)
		w.err = err
		if e != ln.members.Front() {
			close(w.turn)
		}
	}
	return ln.remove()
}

// lineEnd says what is not wanted any more once nobody is left in a line.
type lineEnd struct {
	unwatch bool // its wake-ups
	leave   bool // the place of this process in the line of processes
}

func (ln *line) remove() lineEnd {
	rest := ln.lines.byLock[ln.lock]
	for i, other := range rest {
		if other == ln {
			rest = append(rest[:i], rest[i+1:]...)
			break
		}
	}
	if len(rest) == 0 {
		delete(ln.lines.byLock, ln.lock)
	} else {
		ln.lines.byLock[ln.lock] = rest
	}
	if ln.inLine && len(rest) > 0 {
		rest[0].inLine, ln.inLine = true, false
	}
	return lineEnd{unwatch: ln.watched, leave: ln.inLine}
}

// isBusy notes that somebody else holds the lock. It is true when wake-ups are
// wanted from now on. The head waits as well from its first answer on: if that is
// one more than max, the last in the line is refused.
func (ln *line) isBusy(b *busy, max *int, refusal error) (watch bool) {
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	if ln.trying && max != nil && ln.members.Len() > *max {
		last := ln.members.Remove(ln.members.Back()).(*waiter)
		last.err = refusal
		close(last.turn)
	}
	ln.trying, ln.answered, ln.local, ln.silence = false, true, false, time.Time{}
	ln.until, ln.exact = b.until, b.exact
	ln.inLine = true
	watch = !ln.watched
	ln.watched = true
	return watch
}

// isSilent notes that an attempt, made at a time, has failed, and returns since when
// all have.
func (ln *line) isSilent(asked time.Time) (since time.Time) {
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	if ln.silence.IsZero() {
		ln.silence = asked
	}
	return ln.silence
}

// state returns what is known about the lock.
func (ln *line) state() (answered, local bool, until time.Time, exact bool) {
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	return ln.answered, ln.local, ln.until, ln.exact
}
