package schedule

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// linger is how long a goroutine without work stays: work tends to come again soon, and
	// finds a goroutine that runs, with a stack that has grown already.
	linger = 200 * time.Millisecond
	// maxIdle bounds the goroutines that stay.
	maxIdle = 64
)

// Workers runs background work, and counts it, so that one can wait for its end. A
// goroutine that has done its task stays for 200 ms, 64 of them at most, and does the
// next: that spares most of what a goroutine costs, the growth of its stack. The zero
// value is ready; the methods are safe for concurrent use and do not block.
type Workers struct {
	running Count // with a task or idle
	idle    atomic.Int32

	ready, stopped sync.Once
	tasks          chan task     // for those that are idle
	stop           chan struct{} // closed: none stays any more
}

type task = interface{ Run() }

type taskFunc func()

func (f taskFunc) Run() { f() }

// Start runs f in a goroutine.
func (w *Workers) Start(f func()) { w.Begin(taskFunc(f)) }

// Begin runs a task in a goroutine.
func (w *Workers) Begin(task interface{ Run() }) {
	w.prepare()
	select {
	case w.tasks <- task:
	default:
		w.running.Begin()
		go w.work(task)
	}
}

// Stop sends idle workers home, and returns a channel that is closed as soon as none
// runs. Work may still begin, and is waited for too, if the channel is not closed yet;
// no worker stays idle from now on.
func (w *Workers) Stop() <-chan struct{} {
	w.prepare()
	w.stopped.Do(func() { close(w.stop) })
	return w.running.None()
}

func (w *Workers) prepare() {
	w.ready.Do(func() { w.tasks, w.stop = make(chan task), make(chan struct{}) })
}

// work runs tasks until none has come for a while.
func (w *Workers) work(t task) {
	defer w.running.End()
	timer := time.NewTimer(linger)
	for t != nil {
		t.Run()
		t = w.next(timer)
	}
}

// next waits for a task; nil: the worker is to go home.
func (w *Workers) next(timer *time.Timer) (t task) {
	defer w.idle.Add(-1)
	if w.idle.Add(1) > maxIdle {
		return nil
	}
	timer.Reset(linger)
	select {
	case t = <-w.tasks:
	case <-timer.C:
	case <-w.stop:
	}
	return t
}

// Count counts what is under way, so that one can wait for its end. The zero value is
// ready; the methods are safe for concurrent use and do not block.
type Count struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0; nil when nobody waits
}

// Begin counts one more, until End.
func (c *Count) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// End counts one less.
func (c *Count) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	c.check()
}

// None returns a channel that is closed as soon as nothing is under way. What begins before
// that is waited for, too.
func (c *Count) None() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.none == nil {
		c.none = make(chan struct{})
	}
	none := c.none
	c.check()
	return none
}

// check tells who waits when nothing is under way. c.mu is held.
func (c *Count) check() {
	if c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// Await waits for done or for the end of ctx, and prefers done.
func Await(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
	case <-ctx.Done():
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}
