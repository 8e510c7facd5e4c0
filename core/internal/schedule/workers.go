package schedule

import (
	"slices"
	"sync"
	"time"
)

// maxIdle bounds the workers that stay without a task.
const maxIdle = 16

// Workers runs background work, and counts it, so that one can wait for its end. A
// goroutine that has done its task stays for 200 ms, 16 of them at most, and does the
// next: that spares most of what a goroutine costs, the growth of its stack. The zero
// value is ready; the methods are safe for concurrent use and do not block.
type Workers struct {
	running Count // with a task or idle

	mu      sync.Mutex
	idle    []chan<- task // the latest last
	stopped bool          // none stays any more
}

type task = interface{ Run() }

type taskFunc func()

func (f taskFunc) Run() { f() }

// Start runs f in a goroutine.
func (w *Workers) Start(f func()) { w.Begin(taskFunc(f)) }

// Begin runs a task in a goroutine.
func (w *Workers) Begin(task interface{ Run() }) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := len(w.idle) - 1; last >= 0 {
		w.idle[last] <- task
		w.idle = w.idle[:last]
		return
	}
	w.running.Begin()
	go w.work(task)
}

// Wait sends idle workers home, and returns a channel that is closed as soon as none
// runs. Work may still begin, and is waited for too, if the channel is not closed yet;
// no worker stays idle from now on.
func (w *Workers) Wait() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	for _, worker := range w.idle {
		worker <- nil
	}
	w.idle = nil
	return w.running.None()
}

// work runs tasks until none has come for a while.
func (w *Workers) work(t task) {
	defer w.running.End()
	next := make(chan task, 1) // holds a task, or nil to go home
	timer := time.NewTimer(linger)
	for t != nil {
		t.Run()
		if !w.rest(next) {
			return
		}
		timer.Reset(linger)
		select {
		case t = <-next:
		case <-timer.C:
			if w.leave(next) {
				return
			}
			t = <-next
		}
	}
}

// rest makes a worker known as idle, unless there are enough.
func (w *Workers) rest(worker chan<- task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || len(w.idle) == maxIdle {
		return false
	}
	w.idle = append(w.idle, worker)
	return true
}

// leave takes an idle worker out. It is false when it has been given a task.
func (w *Workers) leave(worker chan<- task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.idle, worker)
	if i < 0 {
		return false
	}
	w.idle = slices.Delete(w.idle, i, i+1)
	return true
}
