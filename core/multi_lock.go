package core

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// MultiLock is the locks of several keys, taken by [Locker.LockAll]. It must be unlocked. Its
// methods are safe for concurrent use. Unlock and Abort of a nil one return [ErrNotHeld].
type MultiLock struct {
	locker *Locker
	locks  []*Lock // as they were taken, each under the context of the one before
	ctx    context.Context
	cancel context.CancelCauseFunc // all of these
}

// Keys returns the keys, each once, in the order in which they were taken: first those that
// the context held.
func (m *MultiLock) Keys() []string {
	keys := make([]string, len(m.locks))
	for i, k := range m.locks {
		keys[i] = k.Key()
	}
	return keys
}

// Token returns the fencing token of a key, as [Lock.Token] does; 0 for a key that is not among
// [MultiLock.Keys].
func (m *MultiLock) Token(key string) int64 {
	for _, k := range m.locks {
		if k.Key() == key {
			return k.Token()
		}
	}
	return 0
}

// Context returns the context to work under, as [Lock.Context] does. It carries the ownership
// of all locks, and ends as soon as the protection of one of them does.
func (m *MultiLock) Context() context.Context { return m.ctx }

// Unlock unlocks all, in reverse order, and whatever comes of one of them, as [Lock.Unlock]
// does: in all it blocks for [Timeout] at most. Context is done before anybody else can have one of them.
// It returns the errors joined; [ErrNotHeld] when it is called again.
//
// [KeepFor] opens the windows of all locks or, after the loss of one or
// [Lock.DropWindow], of none. So with KeepFor Unlock first asks Redis whether all are held, which may
// take as long again.
func (m *MultiLock) Unlock(ctx context.Context) error { return m.finish(ctx, store.Done, false) }

// Abort is Unlock after a failure: it opens no [KeepFor] window.
func (m *MultiLock) Abort(ctx context.Context) error { return m.finish(ctx, store.Failed, false) }

func (m *MultiLock) usable() error {
	for _, k := range m.locks {
		if err := k.usable(); err != nil {
			return err
		}
	}
	return nil
}

func (m *MultiLock) reportFailure(err error) { m.locker.reportRelease(m.ctx, err, m.Keys()...) }

// finish ends the holds in reverse order. With later, Redis may be asked in the background: then the error is what
// is known before.
func (m *MultiLock) finish(ctx context.Context, work store.Work, later bool) error {
	if m == nil {
		return notHeldError("")
	}
	if !m.keepWindows(lasting(ctx)) {
		work = store.Failed
	}
	all, errs := make([]releasing, 0, len(m.locks)), []error(nil)
	for _, k := range slices.Backward(m.locks) {
		switch last, err := k.lease.leave(k); err {
		case nil:
			all = append(all, releasing{lease: k.lease, lock: k, last: last})
		case ErrHandedOver:
		default:
			errs, work = append(errs, err), store.Failed
		}
	}
	m.cancel(nil)
	all = slices.DeleteFunc(all, func(r releasing) bool { return r.last && r.lease.handOffInMemory(r.lock) })
	switch {
	case len(all) == 0:
	case later && !slices.ContainsFunc(all, func(r releasing) bool { return !r.canEndLater() }):
		for _, r := range all {
			r.releaseLater(work)
		}
	default:
		errs = append(errs, endAll(lasting(ctx), all, work))
	}
	return errors.Join(errs...)
}

// endAll releases what has left its leases.
func endAll(ctx context.Context, all []releasing, work store.Work) error {
	var errs []error
	requests := make([]*store.Release, len(all))
	for i := range all {
		all[i].start(work)
		requests[i] = &all[i].request
	}
	e := all[0].lease.engine
	for i, released := range e.store.ReleaseAll(ctx, requests, e.timeout) {
		r := &all[i]
		signal, err := r.confirm(ctx, released.Answer, released.Err)
		if r.lease.retire(signal, err); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// keepWindows says that the locks are to leave their dedup windows: it asks Redis whether it has all of them.
func (m *MultiLock) keepWindows(ctx context.Context) bool {
	if len(m.locks) > 1 && slices.ContainsFunc(m.locks, func(k *Lock) bool { return k.lease.Window > 0 }) {
		var asked sync.WaitGroup
		for _, k := range m.locks {
			asked.Add(1)
			m.locker.requests.Start(func() {
				defer asked.Done()
				_ = k.Refresh(ctx) // a loss is noted in the lease
			})
		}
		asked.Wait()
	}
	return !slices.ContainsFunc(m.locks, func(k *Lock) bool { return k.lease.hasFailed() || k.lease.check() != nil })
}
