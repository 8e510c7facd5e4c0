package core

import (
	"context"
	"sync"
	"time"
)

// errand is an exchange under way, and the context under which go-redis sends it: one
// with the values of the caller's, which lasts as long as somebody waits.
type errand struct {
	node     *node
	delivery delivery
	flight   *flight
	own      flight // of the first copy
	lane     *lane  // that has let it go by itself; nil for one that goes another way
	caller   context.Context
	deadline time.Time

	answered chan struct{} // answer is there
	answer   answer

	mu   sync.Mutex
	over chan struct{} // closed when nobody waits any more; made when it is asked for
	err  error         // why nobody waits any more
}

// newErrand takes the flight of an earlier copy, or nil.
func newErrand(ctx context.Context, n *node, c *call, end time.Time, undo func(*node), f *flight) *errand {
	e := &errand{
		node:     n,
		flight:   f,
		caller:   ctx,
		deadline: end,
		answered: make(chan struct{}, 1),
	}
	if f == nil {
		e.own = flight{node: n, undo: undo}
		e.flight = &e.own
	}
	e.delivery = delivery{call: c, timeout: time.Until(end), flight: e.flight, to: e}
	return e
}

// run sends the call by itself.
func (e *errand) run() {
	values, err := e.node.run(e, e.delivery.call, e.flight)
	e.node.failed(err)
	e.receive(values, err, time.Time{})
	if e.lane != nil {
		e.lane.leave()
	}
}

// receive takes the outcome, of which there is one.
func (e *errand) receive(values []any, err error, _ time.Time) {
	e.answer = answer{values: values, err: err}
	e.answered <- struct{}{}
}

// late is the error of the context if the answer is a failure that came when its time
// was over.
func (e *errand) late() error {
	if e.answer.err == nil || time.Now().Before(e.deadline) {
		return nil
	}
	return context.DeadlineExceeded
}

// end says that nobody waits any more.
func (e *errand) end(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = why
	if e.over != nil {
		close(e.over)
	}
}

func (e *errand) Deadline() (time.Time, bool) { return e.deadline, true }

func (e *errand) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over == nil {
		e.over = make(chan struct{})
		if e.err != nil {
			close(e.over)
		}
	}
	return e.over
}

func (e *errand) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

func (e *errand) Value(key any) any { return e.caller.Value(key) }
