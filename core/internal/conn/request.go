package conn

import (
	"context"
	"time"
)

// request is a copy of a command in flight, by itself or in a pipeline. It is also the
// context under which go-redis sends it: one with the values of the caller's, which
// lasts as long as somebody waits. One of package context's takes three times as long.
type request struct {
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

// request returns one for the next copy.
func (d *dispatch) request() *request {
	r := &d.first
	if r.queued.dispatch != nil {
		r = new(request)
	}
	r.queued.dispatch = d
	return r
}

// prepare is for a caller that waits until the end.
func (r *request) prepare(caller context.Context, end time.Time, answered chan struct{}) {
	r.queued.Command, r.queued.Timeout, r.queued.To = r.queued.dispatch.command, time.Until(end), r
	r.caller, r.deadline = caller, end
	r.answered, r.over = answered, make(chan struct{})
}

// Run sends the command by itself.
func (r *request) Run() {
	d := r.queued.dispatch
	sent := time.Now()
	value, err := d.server.run(r)
	d.server.heard(err)
	r.Receive(Reply{Value: value}, err)
	if r.pipeline != nil && r.pipeline.leave(sent) {
		r.pipeline.drain()
	}
}

// Receive takes the outcome, of which there is one.
func (r *request) Receive(reply Reply, err error) {
	r.answer = answer{value: reply.Value, err: err}
	r.answered <- struct{}{}
}

// end says that nobody waits any more.
func (r *request) end(why error) {
	r.err = why
	close(r.over)
}

func (r *request) Deadline() (time.Time, bool) { return r.deadline, true }
func (r *request) Done() <-chan struct{}       { return r.over }
func (r *request) Value(key any) any           { return r.caller.Value(key) }

func (r *request) Err() error {
	select {
	case <-r.over:
		return r.err
	default:
		return nil
	}
}
