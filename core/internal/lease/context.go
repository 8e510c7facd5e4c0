package lease

import (
	"cmp"
	"context"
	"sync"
)

// leaseContext is the context of a call that has a lock, which ends with the protection. Nobody waits for the end of most:
// a context that can tell of it takes several allocations, and is made for who asks.
type leaseContext struct {
	call context.Context // that of the call

	mu     sync.Mutex
	cancel context.CancelCauseFunc // of the context that was made; nil: it was not
	made   any                     // that context; as long as there is none, the cause of the end, if that came first
}

// context returns one that ends with the protection, or, unless that is awaited, one that has not ended yet.
func (c *leaseContext) context(awaited bool) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.make(awaited)
}

// err is that of the context. Nobody makes one meanwhile that ends a moment later than the call's.
func (c *leaseContext) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.make(false).Err()
}

// make is context. c.mu is held.
func (c *leaseContext) make(awaited bool) context.Context {
	cause, ended := c.made.(error)
	switch {
	case c.cancel != nil:
		return c.made.(context.Context)
	case ended: // the call's may have ended since, for a cause of its own
		made, cancel := context.WithCancelCause(context.WithoutCancel(c.call))
		c.set(made, cancel)
		cancel(cause)
		return made
	case awaited:
		c.set(context.WithCancelCause(c.call))
		return c.made.(context.Context)
	default:
		return c.call
	}
}

// set has it be a context that was made. c.mu is held, or nobody else knows it.
func (c *leaseContext) set(made context.Context, cancel context.CancelCauseFunc) {
	c.made, c.cancel = made, cancel
}

// end ends it for a cause, or for none, unless it has ended.
func (c *leaseContext) end(cause error) {
	c.mu.Lock()
	cancel := c.cancel
	if cancel == nil && c.made == nil && c.call.Err() == nil {
		c.made = cmp.Or(cause, context.Canceled)
	}
	c.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}
