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
	answer   answer
	answered chan struct{} // receives once, when there is one
	over     chan struct{} // closed when nobody waits any more
	err      error         // why; set before
}

// attempt returns one for the next copy.
func (d *dispatch) attempt() *attempt {
	a := &d.first
	if a.queued.dispatch != nil {
		a = new(attempt)
	}
	a.queued.dispatch = d
	return a
}

// prepare is for a caller that waits until the end.
func (a *attempt) prepare(caller context.Context, end time.Time, answered chan struct{}) {
	a.queued.Command, a.queued.Timeout, a.queued.To = a.queued.dispatch.command, time.Until(end), a
	a.caller, a.deadline = caller, end
	a.answered, a.over = answered, make(chan struct{})
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
	a.answer = answer{value: reply.Value, err: err}
	a.answered <- struct{}{}
}

// end says that nobody waits any more.
func (a *attempt) end(why error) {
	a.err = why
	close(a.over)
}

func (a *attempt) Deadline() (time.Time, bool) { return a.deadline, true }
func (a *attempt) Done() <-chan struct{}       { return a.over }
func (a *attempt) Value(key any) any           { return a.caller.Value(key) }

func (a *attempt) Err() error {
	select {
	case <-a.over:
		return a.err
	default:
		return nil
	}
}
