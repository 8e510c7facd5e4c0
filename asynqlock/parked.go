package asynqlock

import (
	"container/list"
	"time"
)

// parkedTask is a task that this process has parked, and which it has run when there is room.
type parkedTask struct {
	taskRef
	key string
	due time.Time // when asynq runs it if nobody else has it run, in whole seconds

	inKey, inAll *list.Element
}

type taskRef struct{ queue, id string }

// parkedTasks are all of them, in the order of parking. A key is in one of three lists if there
// may be something to do for it; one that has parked tasks, and none that waits or is expected,
// always is. So a scan takes as long as what it finds, however many keys are busy.
type parkedTasks struct {
	all        list.List // of *parkedTask
	byRef      map[taskRef]*parkedTask
	ready      list.List // of *keyState: there may be room
	needWorker list.List // of *keyState: there is room as soon as workers are to spare
	nextScan   list.List // of *keyState: nothing can be done in this scan
}

// park notes a task, in place of what was noted of it before.
func (w *workers) park(t *parkedTask) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(w.parked.byRef[t.taskRef])
	w.insert(t)
	w.moveTo(&w.parked.ready, w.keys[t.key])
}

// doesNotCome notes that a task which takeNext has returned is not expected any more.
func (w *workers) doesNotCome(t *parkedTask) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.keys[t.key]; k != nil && len(k.expectedUntil) > 0 {
		w.dropFirstExpected(k)
		w.recheck(k)
		w.forgetIfUnused(k)
	}
}

// parkAgain is doesNotCome for a task that the next scan tries again.
func (w *workers) parkAgain(t *parkedTask) {
	w.doesNotCome(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.parked.byRef[t.taskRef] == nil { // it was not parked once more meanwhile
		w.insert(t)
	}
	w.moveTo(&w.parked.nextScan, w.stateOf(t.key))
}

// idle reports that no task is parked, nor expected.
func (w *workers) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.parked.all.Len() == 0 && len(w.expectations) == 0
}

func (w *workers) beginScan() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropOverdue()
	// Tasks behind a later one may be due as well. A scan drops them within a minute, or takeNext does.
	for e := w.parked.all.Front(); e != nil && e.Value.(*parkedTask).isDueSoon(); e = w.parked.all.Front() {
		w.drop(e.Value.(*parkedTask))
	}
	for e := w.parked.nextScan.Front(); e != nil; e = w.parked.nextScan.Front() {
		w.moveTo(&w.parked.ready, e.Value.(*keyState))
	}
}

// takeNext takes a parked task for which there is room, nil if there is none. It is expected from
// now on.
func (w *workers) takeNext() *parkedTask {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		e := w.parked.ready.Front()
		if e == nil && w.spare() > 0 {
			e = w.parked.needWorker.Front()
		}
		if e == nil {
			return nil
		}
		k := e.Value.(*keyState)
		switch first := k.parked.Front(); {
		case first == nil:
			w.moveTo(nil, k)
			w.forgetIfUnused(k)
		case first.Value.(*parkedTask).isDueSoon():
			w.drop(first.Value.(*parkedTask))
		case w.room(k) > 0:
			w.moveTo(&w.parked.ready, k)
			w.expect(k)
			t := first.Value.(*parkedTask)
			w.drop(t)
			return t
		case k.waiting+len(k.expectedUntil) > 0:
			w.moveTo(nil, k) // until one of them has come or gone
		default:
			w.moveTo(&w.parked.needWorker, k)
		}
	}
}

// isDueSoon reports that asynq runs the task soon: having it run might repeat it.
func (t *parkedTask) isDueSoon() bool { return time.Until(t.due) < surelyParkedFor }

func (w *workers) insert(t *parkedTask) {
	k := w.stateOf(t.key)
	t.inKey, t.inAll = k.parked.PushBack(t), w.parked.all.PushBack(t)
	w.parked.byRef[t.taskRef] = t
}

// drop removes a parked task, if there is one.
func (w *workers) drop(t *parkedTask) {
	if t == nil {
		return
	}
	k := w.keys[t.key]
	k.parked.Remove(t.inKey)
	w.parked.all.Remove(t.inAll)
	delete(w.parked.byRef, t.taskRef)
	w.forgetIfUnused(k)
}

// recheck has a scan look at a key: one of its tasks has come or gone.
func (w *workers) recheck(k *keyState) {
	if k.parked.Len() > 0 {
		w.moveTo(&w.parked.ready, k)
	}
}

// moveTo takes a key from its list to the end of another one, or to none.
func (w *workers) moveTo(to *list.List, k *keyState) {
	if k.list == to {
		return
	}
	if k.list != nil {
		k.list.Remove(k.element)
	}
	if k.list = to; to != nil {
		k.element = to.PushBack(k)
	}
}
