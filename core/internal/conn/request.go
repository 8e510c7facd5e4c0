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
	pipeline *pipeline // that has let it go by itself; nil for one that goes another way
	caller   context.Context
	deadline time.Time
	answer   answer
	answered chan struct{} // closed when there is one
	over     chan struct{} // closed when nobody waits any more
	err      error         // why; set before
}

func newRequest(caller context.Context, d *dispatch, end time.Time) *request {
	r := &request{caller: caller, deadline: end, answered: make(chan struct{}), over: make(chan struct{})}
	r.queued = Queued{Command: d.command, Timeout: time.Until(end), To: r, dispatch: d}
	return r
}

// Run sends the command by itself.
func (r *request) Run() {
	d := r.queued.dispatch
	sent := time.Now()
	value, err := d.server.run(r, d)
	d.server.heard(err)
	r.Receive(Reply{Value: value}, err)
	if r.pipeline != nil {
		r.pipeline.leave(sent)
	}
}

// Receive takes the outcome, of which there is one.
func (r *request) Receive(reply Reply, err error) {
	r.answer = answer{value: reply.Value, err: err}
	close(r.answered)
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
