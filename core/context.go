package core

import (
	"cmp"
	"context"
	"sync"
)

// protected is the context of a call that has a lock, which ends with the protection. Nobody waits for the end of most:
// a context that can tell of it takes several allocations, and is made for who asks.
type protected struct {
	call context.Context // that of the call

	mu     sync.Mutex
	made   context.Context // nil: it was not
	cancel context.CancelCauseFunc
	cause  error // of the end, if that came first
}

// context returns one that ends with the protection, or, unless that is awaited, one that has not ended yet.
func (p *protected) context(awaited bool) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.make(awaited)
}

// err is that of the context. Nobody makes one meanwhile that ends a moment later than the call's.
func (p *protected) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.make(false).Err()
}

// make is context. p.mu is held.
func (p *protected) make(awaited bool) context.Context {
	switch {
	case p.made != nil:
	case p.cause != nil: // the call's may have ended since, for a cause of its own
		p.made, p.cancel = context.WithCancelCause(context.WithoutCancel(p.call))
		p.cancel(p.cause)
	case awaited:
		p.made, p.cancel = context.WithCancelCause(p.call)
	default:
		return p.call
	}
	return p.made
}

// end ends it for a cause, or for none, unless it has ended.
func (p *protected) end(cause error) {
	p.mu.Lock()
	cancel := p.cancel
	if cancel == nil && p.cause == nil && p.call.Err() == nil {
		p.cause = cmp.Or(cause, context.Canceled)
	}
	p.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// isDone waits for done or for the end of ctx, and prefers done.
func isDone(ctx context.Context, done <-chan struct{}) bool {
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
