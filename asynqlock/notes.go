package asynqlock

import (
	"container/list"
	"time"
)

// note is of a task that this process has parked, and which it has run when there is room.
type note struct {
	task taskRef
	key  string
	due  time.Time // when asynq runs it if nobody else has it run, in whole seconds

	inKey, inAll *list.Element
}

type taskRef struct{ queue, id string }

// notes are of all parked tasks, in the order of parking. A key is in one of three lists if there
// may be something to do for it; one that has notes, and no task that waits or is expected, always
// is. So a look takes as long as what it finds, however many keys are busy.
type notes struct {
	all  list.List // of *note
	of   map[taskRef]*note
	room list.List // of *keyState: there may be room
	poor list.List // of *keyState: there is room as soon as workers are to spare
	next list.List // of *keyState: nothing could be done, until the next look
}

// note notes a task, in place of an earlier note of it.
func (w *workers) note(n *note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(w.notes.of[n.task])
	w.insert(n)
	w.move(w.keys[n.key], &w.notes.room)
}

// stale notes that a task which take has returned does not come.
func (w *workers) stale(n *note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.keys[n.key]; p != nil && len(p.coming) > 0 {
		w.expire(p)
		w.changed(p)
		w.forget(p)
	}
}

// again is stale, and the next look tries the task again.
func (w *workers) again(n *note) {
	w.stale(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notes.of[n.task] == nil { // it was not parked once more meanwhile
		w.insert(n)
	}
	w.move(w.state(n.key), &w.notes.next)
}

// idle reports that no task is parked, nor expected.
func (w *workers) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.notes.all.Len() == 0 && len(w.latest) == 0
}

// look begins a look.
func (w *workers) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expireAll()
	// Notes behind a later one may be due as well. A look drops them within a minute, or take does.
	for e := w.notes.all.Front(); e != nil && e.Value.(*note).isLate(); e = w.notes.all.Front() {
		w.drop(e.Value.(*note))
	}
	for e := w.notes.next.Front(); e != nil; e = w.notes.next.Front() {
		w.move(e.Value.(*keyState), &w.notes.room)
	}
}

// take takes the note of a task for which there is room, nil if there is none. The task is
// expected from now on.
func (w *workers) take() *note {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		e := w.notes.room.Front()
		if e == nil && w.spare() > 0 {
			e = w.notes.poor.Front()
		}
		if e == nil {
			return nil
		}
		p := e.Value.(*keyState)
		switch first := p.notes.Front(); {
		case first == nil:
			w.move(p, nil)
			w.forget(p)
		case first.Value.(*note).isLate():
			w.drop(first.Value.(*note))
		case w.room(p) > 0:
			w.move(p, &w.notes.room)
			w.expect(p)
			n := first.Value.(*note)
			w.drop(n)
			return n
		case p.waiting+len(p.coming) > 0:
			w.move(p, nil) // until one of them has come or gone
		default:
			w.move(p, &w.notes.poor)
		}
	}
}

// isLate reports that asynq runs the task soon: having it run might repeat it.
func (n *note) isLate() bool { return time.Until(n.due) < surelyParked }

func (w *workers) insert(n *note) {
	p := w.state(n.key)
	n.inKey, n.inAll = p.notes.PushBack(n), w.notes.all.PushBack(n)
	w.notes.of[n.task] = n
}

// drop takes a note out, if there is one.
func (w *workers) drop(n *note) {
	if n == nil {
		return
	}
	p := w.keys[n.key]
	p.notes.Remove(n.inKey)
	w.notes.all.Remove(n.inAll)
	delete(w.notes.of, n.task)
	w.forget(p)
}

// changed has a key looked at: one of its tasks has come or gone.
func (w *workers) changed(p *keyState) {
	if p.notes.Len() > 0 {
		w.move(p, &w.notes.room)
	}
}

// move takes a key from its list to the end of another one, or to none.
func (w *workers) move(p *keyState, to *list.List) {
	if p.in == to {
		return
	}
	if p.in != nil {
		p.in.Remove(p.at)
	}
	if p.in = to; to != nil {
		p.at = to.PushBack(p)
	}
}
