package core

import (
	"context"
	"fmt"
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
