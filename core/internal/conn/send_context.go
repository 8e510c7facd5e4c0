package conn

import (
	"context"
	"sync"
	"time"
)

// sendContext is the context under which go-redis sends a copy of some commands: it has the caller's values,
// and lasts as long as he waits. A context of package context takes several allocations more.
type sendContext struct {
	caller   context.Context
	deadline time.Time

	mu   sync.Mutex
	err  error         // why nobody waits any more; nil: somebody does
	late time.Duration // by so much it was, after the deadline
	done chan struct{} // closed then; nil: nobody has asked for it
}

// end says that nobody waits any more, and why.
func (c *sendContext) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err, c.late = why, time.Since(c.deadline)
	if c.done != nil {
		close(c.done)
	}
}

// over tells since when the context has ended and its deadline has passed.
func (c *sendContext) over() (since time.Time, isOver bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadline.Add(max(0, c.late)), c.err != nil
}

func (c *sendContext) Deadline() (time.Time, bool) { return c.deadline, true }
func (c *sendContext) Value(key any) any           { return c.caller.Value(key) }

func (c *sendContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *sendContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}
