package conn

import (
	"context"
	"time"
)

// attempt is a copy of a command in flight, by itself or in a pipeline. It is also the
// context under which go-redis sends it: one with the values of the caller's, which
// lasts as long as somebody waits. One of package context's takes three times as long.
type attempt struct {
	queued   Queued
	cmd      once
	pipeline *pipeline // that has let it go by itself; nil for one that goes another way
	caller   context.Context
	deadline time.Time
	wait     *wait
	over     chan struct{} // closed when nobody waits any more
	late     bool          // because the time was over; set before
}

// wait is what it takes to wait for an answer. It can serve another attempt once that has come.
type wait struct {
	attempt  *attempt
	answered chan answer // has room for one
	timer    *time.Timer // ends the attempt
	cancel   func()      // of the attempt
}

// begin is for a caller that waits until the end. cancel or finish must follow.
func (a *attempt) begin(caller context.Context, d *dispatch, end time.Time) {
	left := time.Until(end)
	a.queued = Queued{Command: d.command, Timeout: left, To: a, dispatch: d}
	a.caller, a.deadline, a.over = caller, end, make(chan struct{})
	if w, ok := d.server.waits.Get().(*wait); ok {
		a.wait, w.attempt = w, a
		w.timer.Reset(left)
		return
	}
	w := &wait{attempt: a, answered: make(chan answer, 1)}
	a.wait = w
	w.cancel = func() { w.attempt.cancel() }
	w.timer = time.AfterFunc(left, func() { w.attempt.end(true) })
}

// Run sends the command by itself.
func (a *attempt) Run() {
	d := a.queued.dispatch
	sent := time.Now()
	value, err := d.server.run(a)
	d.server.heard(err)
	a.Receive(Reply{Value: value}, err)
	if a.pipeline != nil && a.pipeline.leave(sent) {
		a.pipeline.drain()
	}
}

// Receive takes the outcome, of which there is one.
func (a *attempt) Receive(reply Reply, err error) {
	a.wait.answered <- answer{value: reply.Value, err: err}
}

// cancel says that nobody waits any more. It is false when the time is over, or somebody else
// has said so.
func (a *attempt) cancel() bool {
	inTime := a.wait.timer.Stop()
	if inTime {
		a.end(false)
	}
	return inTime
}

// finish is cancel when the answer has come, and when nobody else will cancel any more.
func (a *attempt) finish() {
	if w := a.wait; a.cancel() {
		w.attempt = nil
		a.queued.dispatch.server.waits.Put(w)
	}
}

func (a *attempt) end(late bool) {
	a.late = late
	close(a.over)
}

func (a *attempt) Deadline() (time.Time, bool) { return a.deadline, true }
func (a *attempt) Done() <-chan struct{}       { return a.over }
func (a *attempt) Value(key any) any           { return a.caller.Value(key) }

func (a *attempt) Err() error {
	select {
	case <-a.over:
		if a.late {
			return context.DeadlineExceeded
		}
		return context.Canceled
	default:
		return nil
	}
}
