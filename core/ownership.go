package core

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

type ownershipKey struct{}

// ownership is a lock as the context that holds it, so that this costs no memory of its own.
type ownership Lock

func (o *ownership) Deadline() (time.Time, bool) { return o.under.call.Deadline() }
func (o *ownership) Done() <-chan struct{}       { return o.under.context(true).Done() }
func (o *ownership) Err() error                  { return o.under.err() }
func (o *ownership) String() string              { return fmt.Sprint(o.under.call, ".WithLock") }

func (o *ownership) Value(key any) any {
	if key == (ownershipKey{}) {
		return (*Lock)(o)
	}
	return o.under.context(false).Value(key)
}

// open makes it a handle of a lease.
func (k *Lock) open(ctx context.Context, g *group, s *lease, id string, resends *conn.Resends) {
	k.lease, k.id, k.resends, k.under.call = s, id, resends, ctx
	k.outer, k.group, k.ctx = innermost(ctx), g, (*ownership)(k)
	if g != nil {
		k.under.made, k.under.cancel = ctx, g.cancel
	}
}

// FromContext returns the innermost lock that ctx holds: one taken with a context that ctx descends
// from, and not unlocked since. A lock that was lost is still returned: its Context says so. It does
// not block. Where ctx may hold several, by two middlewares or [Locker.DoAll], that is whichever was
// taken last: ask by [FromContextKey] before its token is used or it is handed over.
func FromContext(ctx context.Context) (*Lock, bool) {
	k := find(ctx, func(*Lock) bool { return true })
	return k, k != nil
}

// FromContextKey returns the innermost lock of a key that ctx holds, as [FromContext] does. The key
// is as the caller wrote it, which [Lock.Key] returns: without [Prefix], and whichever Locker took
// it. Those that [Locker.LockAll] took count, each by its key: they have their tokens, and can be
// handed over one by one; [MultiLock.Unlock] unlocks the rest. It does not block.
func FromContextKey(ctx context.Context, key string) (*Lock, bool) {
	k := find(ctx, func(k *Lock) bool { return k.Key() == key })
	return k, k != nil
}

// Detach returns a context with the values and the cancellation of ctx that owns no lock: what runs
// under it competes for locks like a stranger, also for those that ctx holds. It is for work that must
// not inherit the protection of its starter, such as a goroutine that outlives the handler.
func Detach(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownershipKey{}, (*Lock)(nil))
}

func innermost(ctx context.Context) *Lock {
	v := ctx.Value(ownershipKey{})
	if v == nil {
		v = ctx.Value(option.ContextKey)
	}
	k, _ := v.(*Lock)
	return k
}

// find returns the innermost lock that ctx holds and that matches, or nil.
func find(ctx context.Context, match func(*Lock) bool) *Lock {
	for k := innermost(ctx); k != nil; k = k.outer {
		if k.held() && match(k) {
			return k
		}
	}
	return nil
}

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
