package core

import (
	"sync"
	"time"
)

const (
	// A goroutine that has done its task stays for a while: the next task then
	// finds a stack that has grown already, which is most of what a goroutine costs.
	taskLinger = 200 * time.Millisecond
	// maxIdle bounds those that stay.
	maxIdle = 16
)

// tasks runs the background work of a Locker, and counts it, so that Close can
// wait for it.
type tasks struct {
	mu      sync.Mutex
	n       int           // tasks and idle workers
	idle    []chan task   // of workers without a task, the latest last
	stopped bool          // no worker stays any more
	none    chan struct{} // closed when n is 0; nil when nobody waits
}

type task interface{ run() }

type taskFunc func()

func (f taskFunc) run() { f() }

// start runs f in a goroutine. It does not block.
func (t *tasks) start(f func()) { t.begin(taskFunc(f)) }

// begin runs a task in a goroutine. It does not block.
func (t *tasks) begin(f task) {
	t.mu.Lock()
	if last := len(t.idle) - 1; last >= 0 {
		worker := t.idle[last]
		t.idle = t.idle[:last]
		t.mu.Unlock()
		worker <- f
		return
	}
	t.n++
	t.mu.Unlock()
	go t.work(f)
}

// work runs tasks until none has come for a while.
func (t *tasks) work(f task) {
	defer t.end()
	f.run()
	next := make(chan task, 1)
	timer := time.NewTimer(taskLinger)
	defer timer.Stop()
	worked := false // since the timer was set
	for t.rest(next) {
		for waiting := true; waiting; {
			select {
			case f = <-next:
				waiting, worked = false, true
			case <-timer.C:
				if !worked && t.leave(next) {
					return
				}
				worked = false // if it could not leave, a task is on its way
				timer.Reset(taskLinger)
			}
		}
		if f == nil {
			return
		}
		f.run()
	}
}

// rest makes a worker known as idle, unless there are enough.
func (t *tasks) rest(worker chan task) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped || len(t.idle) == maxIdle {
		return false
	}
	t.idle = append(t.idle, worker)
	return true
}

// leave takes an idle worker out. It is false when it has been given a task.
func (t *tasks) leave(worker chan task) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.idle {
		if w == worker {
			t.idle = append(t.idle[:i], t.idle[i+1:]...)
			return true
		}
	}
	return false
}

func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.n == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// wait sends idle workers home and returns a channel that is closed when no task
// runs.
func (t *tasks) wait() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	for _, worker := range t.idle {
		worker <- nil
	}
	t.idle = nil
	if t.n == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if t.none == nil {
		t.none = make(chan struct{})
	}
	return t.none
}
