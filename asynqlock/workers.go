package asynqlock

import (
	"runtime"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// inDemand is for how long all workers are taken to be needed after they were all busy.
const inDemand = 100 * time.Millisecond

// workers knows what the workers of a server do, by key, and so how many more tasks may come
// for one. It is safe for concurrent use.
type workers struct {
	all     int
	reserve int           // this many are left to other keys
	check   time.Duration // asynq looks for tasks so often when there is none

	mu     sync.Mutex
	busy   int
	full   time.Time // when all of them were last busy
	coming int       // tasks that were promoted, of all keys
	keys   map[string]*presence
}

// presence is what there is of a key.
type presence struct {
	waiting int
	coming  []time.Time   // until when tasks are expected that were promoted
	turn    time.Duration // for how long a task waits for each one before it, on average
	blocked bool          // the last one that waited has not got the key
	notes   *notes        // nil: none that this process knows of
}

// notes are those beside the lock of a key.
type notes struct {
	key    string
	locker *core.Locker
	added  int // by this process: between two looks with the same number there was none
}

// newWorkers takes what asynq.Config has, with asynq's defaults.
func newWorkers(all int, check time.Duration) *workers {
	if all == 0 {
		all = runtime.NumCPU()
	}
	if check == 0 {
		check = time.Second
	}
	return &workers{all: all, reserve: max(2, all/5), check: check, keys: map[string]*presence{}}
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

// join notes that a task asks for its keys, and returns how many may wait for one, and how many
// do before it. Any task stands for one that is expected: where other processes take those that
// were promoted here, those that were promoted there come here.
func (w *workers) join(keys []string) (most, before int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	blocked, expected := false, false
	for _, key := range keys {
		p := w.presence(key)
		blocked = blocked || p.blocked
		before = max(before, p.waiting)
		p.waiting++
		if len(p.coming) > 0 {
			expected = true
			w.expire(p, 1)
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

// acquired notes that a task has its keys, after so long for each turn. It reports whether there
// are notes, and with that room for another task.
func (w *workers) acquired(keys []string, turn time.Duration) (noted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		if p := w.keys[key]; p != nil && p.notes != nil {
			p.blocked = false
			if p.turn == 0 {
				p.turn = turn
			}
			p.turn += (turn - p.turn) / 8
			noted = true
		}
	}
	return noted
}

// refused notes that a task has waited in vain.
func (w *workers) refused(keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		p := w.presence(key)
		p.blocked = p.notes != nil
	}
}

// leave notes that a task waits no longer.
func (w *workers) leave(keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		w.presence(key).waiting--
		w.forget(key)
	}
}

// room is how many more tasks of a key may be promoted.
func (w *workers) room(key string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expireAll()
	p, spare := w.presence(key), w.spare()
	here := p.waiting + len(p.coming)
	if p.blocked {
		return min(1-here, spare) // enough to notice when it becomes free
	}
	// In half the time that tasks wait, or some would wait in vain.
	most := max(1, int(usualWait/2/max(p.turn, 1)))
	return min(most, max(usualWaiters, here+spare)) - here
}

// spare is how many workers have nothing to do, beside the reserve. Where all were busy just now,
// one that has become free has the next task in a moment.
func (w *workers) spare() int {
	if time.Since(w.full) < max(w.check, inDemand) {
		return -1
	}
	return w.all - w.busy - w.coming - w.reserve
}

// promote notes that a task is going to come.
func (w *workers) promote(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.presence(key)
	p.coming = append(p.coming, time.Now().Add(3*w.check/2))
	w.coming++
}

// expire drops the first of those that are expected.
func (w *workers) expire(p *presence, n int) {
	p.coming = p.coming[n:]
	w.coming -= n
}

// expireAll drops those that have not come.
func (w *workers) expireAll() {
	now := time.Now()
	for key, p := range w.keys {
		n := 0
		for n < len(p.coming) && now.After(p.coming[n]) {
			n++
		}
		w.expire(p, n)
		w.forget(key)
	}
}

// note notes that there are notes.
func (w *workers) note(key string, locker *core.Locker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.presence(key)
	if p.notes == nil {
		p.notes = &notes{key: key, locker: locker}
	}
	p.notes.locker = locker
	p.notes.added++
}

// noted returns the keys that have notes.
func (w *workers) noted() (all []notes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.keys {
		if p.notes != nil {
			all = append(all, *p.notes)
		}
	}
	return all
}

// none notes that a look has found the last of the notes.
func (w *workers) none(seen notes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.presence(seen.key); p.notes != nil && p.notes.added == seen.added {
		p.notes = nil
	}
	w.forget(seen.key)
}

func (w *workers) presence(key string) *presence {
	p := w.keys[key]
	if p == nil {
		p = &presence{}
		w.keys[key] = p
	}
	return p
}

// forget drops a key of which nothing is known.
func (w *workers) forget(key string) {
	if p := w.keys[key]; p.waiting == 0 && len(p.coming) == 0 && p.notes == nil {
		delete(w.keys, key)
	}
}
