package asynqlock

import (
	"cmp"
	"container/list"
	"runtime"
	"sync"
	"time"
)

// inDemand is for how long all workers are taken to be needed after they were all busy.
const inDemand = 100 * time.Millisecond

// workers counts what the workers of a server do, by key, and says how many more tasks of a key
// may come. It is safe for concurrent use.
type workers struct {
	all     int
	reserve int           // this many are left to other keys
	check   time.Duration // asynq looks for tasks so often when there is none

	mu     sync.Mutex
	busy   int
	full   time.Time // when all of them were last busy
	coming int       // tasks that were promoted, of all keys
	latest []expected
	keys   map[string]*keyState
	notes  notes
}

// expected says until when a promoted task of a key is expected. It may have come.
type expected struct {
	key   string
	until time.Time
}

// keyState is what is known of a key.
type keyState struct {
	key     string
	waiting int
	coming  []time.Time // until when tasks are expected that were promoted
	pace    pace
	blocked bool      // the last task that waited has not got the key
	notes   list.List // of *note

	in *list.List // of notes
	at *list.Element
}

// newWorkers takes what asynq.Config has, with asynq's defaults.
func newWorkers(all int, check time.Duration) *workers {
	all, check = cmp.Or(all, runtime.NumCPU()), cmp.Or(check, time.Second)
	return &workers{all: all, reserve: max(2, all/5), check: check, keys: map[string]*keyState{}, notes: notes{of: map[taskRef]*note{}}}
}

func (w *workers) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy++
	if w.busy >= w.all {
		w.full = time.Now()
	}
}

func (w *workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
}

// join notes that a task asks for its keys. It returns how many tasks may wait for a key, and how
// many wait before this one. Any task stands for one that is expected: while other processes take
// tasks that were promoted here, tasks that were promoted there come here.
func (w *workers) join(keys []string) (most, before int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	blocked, expected := false, false
	for _, key := range keys {
		p := w.state(key)
		blocked = blocked || p.blocked
		before = max(before, p.waiting)
		p.waiting++
		if len(p.coming) > 0 {
			expected = true
			w.expire(p)
		}
	}
	switch spare := w.spare(); {
	case expected:
		return max(w.all, usualWaiters), before
	case blocked:
		return min(1, max(0, spare+1)), before
	case spare < 0:
		return usualWaiters, before
	default:
		return max(w.all, usualWaiters), before
	}
}

// acquired notes that a task has its keys. It reports whether there are notes, and with that room
// for another task.
func (w *workers) acquired(keys []string) (noted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		if p := w.keys[key]; p != nil && p.notes.Len() > 0 {
			p.blocked = false
			p.pace.acquired(time.Now())
			w.changed(p)
			noted = true
		}
	}
	return noted
}

// refused notes that a task has waited and not got its keys.
func (w *workers) refused(keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		p := w.state(key)
		p.blocked = p.notes.Len() > 0
	}
}

// leave notes that a task waits no longer.
func (w *workers) leave(keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		p := w.state(key)
		p.waiting--
		w.changed(p)
		w.forget(p)
	}
}

// room is how many more tasks of a key may be promoted.
func (w *workers) room(p *keyState) int {
	spare := w.spare()
	here := p.waiting + len(p.coming)
	if p.blocked {
		return min(1-here, spare) // enough to notice when it becomes free
	}
	// As many as get the key within half of the usual wait after asynq has looked: with more, some would be refused.
	most := 1 + int((usualWait+w.check)/2/max(p.pace.each, 1))
	return min(most, max(usualWaiters, here+spare)) - here
}

// spare is how many workers have nothing to do, beside the reserve. If all were busy just now,
// one that has become free gets the next task in a moment.
func (w *workers) spare() int {
	if time.Since(w.full) < max(w.check, inDemand) {
		return -1
	}
	return w.all - w.busy - w.coming - w.reserve
}

// expect notes that a task is going to come.
func (w *workers) expect(p *keyState) {
	until := time.Now().Add(3 * w.check / 2)
	p.coming = append(p.coming, until)
	w.latest = append(w.latest, expected{p.key, until})
	w.coming++
}

// expire drops the first of those that are expected.
func (w *workers) expire(p *keyState) {
	p.coming = p.coming[1:]
	w.coming--
}

// expireAll drops those that have not come.
func (w *workers) expireAll() {
	now := time.Now()
	for len(w.latest) > 0 && now.After(w.latest[0].until) {
		p := w.keys[w.latest[0].key]
		w.latest = w.latest[1:]
		if p != nil && len(p.coming) > 0 && now.After(p.coming[0]) {
			w.expire(p)
			w.changed(p)
			w.forget(p)
		}
	}
}

func (w *workers) state(key string) *keyState {
	p := w.keys[key]
	if p == nil {
		p = &keyState{key: key, pace: pace{since: time.Now()}}
		w.keys[key] = p
	}
	return p
}

// forget drops a key of which nothing is known.
func (w *workers) forget(p *keyState) {
	if p.waiting == 0 && len(p.coming) == 0 && p.notes.Len() == 0 {
		w.move(p, nil)
		delete(w.keys, p.key)
	}
}
