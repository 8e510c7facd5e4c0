package core

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// MultiLock is the locks of several keys, taken by [Locker.LockAll]. It must be unlocked. Its
// methods are safe for concurrent use.
type MultiLock struct {
	locker *Locker
	locks  []*Lock // as they were taken, each under the context of the one before
	ctx    context.Context
	cancel context.CancelCauseFunc // all of these
	began  time.Time               // the call
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
func (m *MultiLock) Unlock(ctx context.Context) error { return m.finish(ctx, false, false) }

// Abort is Unlock after a failure: it opens no [KeepFor] window.
func (m *MultiLock) Abort(ctx context.Context) error { return m.finish(ctx, true, false) }

// waited is for how long the call has waited; 0 of a nil MultiLock.
func (m *MultiLock) waited() time.Duration {
	if m == nil {
		return 0
	}
	return time.Since(m.began)
}

func (m *MultiLock) usable() error {
	for _, k := range m.locks {
		if err := k.usable(); err != nil {
			return err
		}
	}
	return nil
}

func (m *MultiLock) reportFailure(err error) {
	if err != nil && !errors.Is(err, ErrNotHeld) {
		m.locker.report.warn("a release failed after the work was done", "keys", m.Keys(), "error", err)
	}
}

func (m *MultiLock) finish(ctx context.Context, failed, later bool) error {
	l := m.locker
	all, failed, err := l.leaveAll(ctx, m.locks, failed)
	m.cancel(nil)
	if later && !slices.ContainsFunc(all, func(k left) bool { return !k.lease.canEndLater(k.last) }) {
		l.requests.Start(func() { m.reportFailure(l.endAll(context.Background(), all, failed)) })
		return err
	}
	return errors.Join(err, l.endAll(ctx, all, failed))
}

// finishAll ends the holds of several handles, and not their contexts.
func (l *Locker) finishAll(ctx context.Context, locks []*Lock, failed bool) error {
	all, failed, err := l.leaveAll(ctx, locks, failed)
	return errors.Join(err, l.endAll(ctx, all, failed))
}

// left is a handle that has left its lease, and whether it was the last one.
type left struct {
	*Lock
	last bool
}

// leaveAll takes several handles out of their leases, in reverse order. It returns those whose
// release must follow, and whether they leave no dedup window.
func (l *Locker) leaveAll(ctx context.Context, locks []*Lock, failed bool) (all []left, without bool, err error) {
	failed = failed || !l.keepWindows(lasting(ctx), locks)
	var errs []error
	for _, k := range slices.Backward(locks) {
		if k.handedOver.Load() {
			continue
		}
		last, err := k.lease.leave(k)
		if err == nil {
			all = append(all, left{k, last})
		} else {
			errs, failed = append(errs, err), true
		}
	}
	return all, failed, errors.Join(errs...)
}

// endAll releases what leaveAll has taken out of its leases, or passes it on.
func (l *Locker) endAll(ctx context.Context, all []left, failed bool) error {
	ctx = lasting(ctx)
	// What others of this process wait for is passed on in the end: they may want the rest as well.
	var wanted []left
	endings, releases := make([]ending, len(all)), make([]*store.Release, 0, len(all))
	for _, k := range all {
		if _, waited := l.queues.WaitFor(k.lease.name.Lock()); waited && k.last && k.lease.canBePassed() {
			wanted = append(wanted, k)
			continue
		}
		e := &endings[len(releases)]
		*e = k.ending(k.last, failed)
		releases = append(releases, &e.request)
	}
	var errs []error
	if len(releases) > 0 {
		l.store.ReleaseAll(ctx, releases, l.timeout, func(i int, r store.Released, err error) {
			e := &endings[i]
			free, err := e.follow(ctx, r, err)
			e.lock.lease.retire(free, err)
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	for _, k := range wanted {
		if k.pass() {
			continue
		}
		if err := k.end(ctx, true, failed); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// keepWindows says that the locks are to leave their dedup windows: it asks Redis whether it
// has all of them.
func (l *Locker) keepWindows(ctx context.Context, locks []*Lock) bool {
	if len(locks) > 1 && slices.ContainsFunc(locks, func(k *Lock) bool { return k.lease.keepFor > 0 }) {
		var asked sync.WaitGroup
		for _, k := range locks {
			asked.Add(1)
			l.requests.Start(func() {
				defer asked.Done()
				_ = k.Refresh(ctx) // a loss is noted in the lease
			})
		}
		asked.Wait()
	}
	return !slices.ContainsFunc(locks, func(k *Lock) bool { return k.lease.dropWindow.Load() || k.lease.check() != nil })
}
