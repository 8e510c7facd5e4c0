package asynqlock

import (
	"cmp"
	"container/list"
	"runtime"
	"sync"
	"time"
)

// demandPeriod is for how long all workers are taken to be needed after they were all busy.
const demandPeriod = 100 * time.Millisecond

// workers counts what the workers of a server do, by key, and says how many more tasks of a key
// may come. It is safe for concurrent use.
type workers struct {
	total         int
	reserve       int           // this many are left to other keys
	checkInterval time.Duration // of asynq, when it has no task

	mu            sync.Mutex
	busy          int
	lastAllBusy   time.Time
	expectedTasks int // tasks that were promoted, of all keys
	expectations  []expectation
	keys          map[string]*keyState
	parked        parkedTasks
}

// expectation says until when a promoted task of a key is expected. It may have come.
type expectation struct {
	key   string
	until time.Time
}

// waitEnd is how the wait of a task for its keys has ended.
type waitEnd int

const (
	refused    waitEnd = iota // because the key is busy
	oneTooMany                // refused because too many wait, which says nothing of the key
	acquired
)

// keyFlow says whether the tasks that wait for a key get it.
type keyFlow int

const (
	flowing keyFlow = iota
	blocked         // the last task that waited has not got the key
)

// keyState is what is known of a key.
type keyState struct {
	key           string
	waiting       int
	expectedUntil []time.Time // of each task that was promoted
	pace          pace
	flow          keyFlow
	parked        list.List // of *parkedTask

	list    *list.List // that of parkedTasks which it is in
	element *list.Element
}

// newWorkers takes what asynq.Config has, with asynq's defaults.
func newWorkers(total int, checkInterval time.Duration) *workers {
	total, checkInterval = cmp.Or(total, runtime.NumCPU()), cmp.Or(checkInterval, time.Second)
	return &workers{
		total: total, reserve: max(2, total/5), checkInterval: checkInterval,
		keys: map[string]*keyState{}, parked: parkedTasks{byRef: map[taskRef]*parkedTask{}},
	}
}

func (w *workers) taskBegins() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy++
	if w.busy >= w.total {
		w.lastAllBusy = time.Now()
	}
}

func (w *workers) taskEnds() {
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
	flow, expected := flowing, 0
	for _, key := range keys {
		k := w.stateOf(key)
		flow = max(flow, k.flow)
		before = max(before, k.waiting)
		k.waiting++
		if len(k.expectedUntil) > 0 {
			expected++
			w.dropFirstExpected(k)
		}
	}
	switch spare := w.spare(); {
	case expected > 0:
		return max(w.total, usualWaiters), before
	case flow == blocked:
		return min(1, max(0, spare+1)), before
	case spare < 0:
		return usualWaiters, before
	default:
		return max(w.total, usualWaiters), before
	}
}

// leave notes that a task waits no longer. It reports whether there is room for a parked one now.
func (w *workers) leave(keys []string, end waitEnd) (room bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		k := w.stateOf(key)
		k.waiting--
		parked := k.parked.Len() > 0
		switch {
		case end == refused && parked:
			k.flow = blocked
		case end == refused:
			k.flow = flowing
		case end == acquired && parked:
			k.flow = flowing
			k.pace.acquired(time.Now())
			room = true
		}
		w.recheck(k)
		w.forgetIfUnused(k)
	}
	return room
}

// room is how many more tasks of a key may be promoted.
func (w *workers) room(k *keyState) int {
	spare := w.spare()
	here := k.waiting + len(k.expectedUntil)
	if k.flow == blocked {
		return min(1-here, spare) // enough to notice when it becomes free
	}
	// As many as get the key within half of the usual wait after asynq has checked: with more, some would be refused.
	most := 1 + int((usualWait+w.checkInterval)/2/max(k.pace.interval, 1))
	return min(most, max(usualWaiters, here+spare)) - here
}

// spare is how many workers have nothing to do, beside the reserve. If all were busy just now,
// one that has become free gets the next task in a moment.
func (w *workers) spare() int {
	if time.Since(w.lastAllBusy) < max(w.checkInterval, demandPeriod) {
		return -1
	}
	return w.total - w.busy - w.expectedTasks - w.reserve
}

// expect notes that a task is going to come.
func (w *workers) expect(k *keyState) {
	until := time.Now().Add(3 * w.checkInterval / 2)
	k.expectedUntil = append(k.expectedUntil, until)
	w.expectations = append(w.expectations, expectation{k.key, until})
	w.expectedTasks++
}

// dropFirstExpected drops the first of the tasks that are expected for a key.
func (w *workers) dropFirstExpected(k *keyState) {
	k.expectedUntil = k.expectedUntil[1:]
	w.expectedTasks--
}

// dropOverdue drops the expected tasks, of all keys, that have not come in time.
func (w *workers) dropOverdue() {
	now := time.Now()
	for len(w.expectations) > 0 && now.After(w.expectations[0].until) {
		k := w.keys[w.expectations[0].key]
		w.expectations = w.expectations[1:]
		if k != nil && len(k.expectedUntil) > 0 && now.After(k.expectedUntil[0]) {
			w.dropFirstExpected(k)
			w.recheck(k)
			w.forgetIfUnused(k)
		}
	}
}

func (w *workers) stateOf(key string) *keyState {
	k := w.keys[key]
	if k == nil {
		k = &keyState{key: key, pace: pace{lastAcquired: time.Now()}}
		w.keys[key] = k
	}
	return k
}

// forgetIfUnused forgets a key of which nothing is known.
func (w *workers) forgetIfUnused(k *keyState) {
	if k.waiting == 0 && len(k.expectedUntil) == 0 && k.parked.Len() == 0 {
		w.moveTo(nil, k)
		delete(w.keys, k.key)
	}
}
