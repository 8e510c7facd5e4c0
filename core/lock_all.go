package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

const (
	// maxKeys is how many locks a call may want at once.
	maxKeys = 64
	// keepAtLeast is how long a call that keeps locks while it waits does so at least: many times
	// as long as others need to ask for several and give them back.
	keepAtLeast = 100 * time.Millisecond
)

// LockAll takes the locks of all keys, or none. A key that is given twice counts once. A key that
// ctx holds is entered once more.
//
// The call takes what is free. While a key is busy, it gives the others back, waits for the busy one
// as [Locker.Lock] does, and then asks for the others again. After as many waits as there are keys
// it keeps those that sort before the busy one, by the bytes of their names in Redis, for half as
// long as it has waited; then it waits on without them. So calls of LockAll do not wait for one
// another in a cycle, and no key stays taken for as long as another one is busy. [Wait], or the lease
// where ctx holds another lock, bounds the whole. Each lock has a lease and a token of its own;
// [FixedLease], [MaxHold] and the window of [KeepFor] count from when it was taken.
//
// A busy lock that sorts before one that ctx holds is refused at once with [*BusyError]: by LockAll
// under any lock, and by Lock under locks of LockAll.
//
// Errors are those of [Locker.Lock], with the key that has failed; [ErrInvalidKey] also for no
// keys, and for more than 64; [ErrLost] and [ErrMaxHold] also when a lock that was taken has ended
// while the call waited for the others. Whatever the error, none of them stays locked.
func (l *Locker) LockAll(ctx context.Context, keys []string, opts ...Option) (*MultiLock, error) {
	s, err := l.settings(opts)
	if err != nil {
		return nil, err
	}
	return l.lockAll(ctx, keys, s)
}

func (l *Locker) lockAll(ctx context.Context, keys []string, s *settings) (*MultiLock, error) {
	if s.Attempt != nil {
		return nil, errors.New("core: LockAll: an attempt is under the lock of one key: use Lock")
	}
	base, cancel := context.WithCancelCause(ctx)
	a := &multiCall{locker: l, caller: ctx, base: base, settings: s, group: &group{cancel, time.Now()}, givenBack: make(chan struct{})}
	close(a.givenBack)
	cs, err := a.calls(keys)
	if err == nil {
		err = a.run(cs)
	}
	if err != nil {
		a.giveBack(a.locks)
		isDone(ctx, a.givenBack)
		cancel(nil)
		return nil, err
	}
	return &MultiLock{locker: l, locks: a.locks, ctx: a.under(), cancel: cancel}, nil
}

// multiCall is a call of LockAll.
type multiCall struct {
	locker    *Locker
	caller    context.Context
	base      context.Context // that of the caller, until a lock ends
	settings  *settings
	group     *group
	keys      int           // that it wants
	locks     []*Lock       // that it has, each under the context of the one before
	entered   int           // how many of these the caller's context holds
	givenBack chan struct{} // closed when locks are that were to be
}

// under is the context that holds what the call has.
func (a *multiCall) under() context.Context {
	if last := len(a.locks) - 1; last >= 0 {
		return a.locks[last].ctx
	}
	return a.base
}

// calls are those for the keys, in the order in which they are waited for.
func (a *multiCall) calls(keys []string) ([]*lockCall, error) {
	l, s := a.locker, a.settings
	all, cs := make([]lockCall, len(keys)), make([]*lockCall, len(keys))
	for i, key := range keys {
		n, err := l.nameOf(key)
		if err != nil {
			return nil, err
		}
		all[i] = lockCall{engine: &l.engine, group: a.group, want: want{ctx: a.base, name: n, settings: s, form: s.Form, owner: s.Owner}}
		cs[i] = &all[i]
	}
	slices.SortFunc(cs, func(x, y *lockCall) int { return cmp.Compare(x.name.Lock(), y.name.Lock()) })
	cs = slices.CompactFunc(cs, func(x, y *lockCall) bool { return x.name == y.name })
	switch {
	case len(cs) == 0:
		return nil, fmt.Errorf("%w: LockAll was given no keys", ErrInvalidKey)
	case len(cs) > maxKeys:
		return nil, fmt.Errorf("%w: LockAll was given %d keys, at most %d are allowed", ErrInvalidKey, len(cs), maxKeys)
	}
	a.keys = len(cs)
	if cs[0].inner() != nil {
		cs[0].boundWait()
		for _, c := range cs {
			c.settings = cs[0].settings
		}
	}
	return cs, nil
}

// run takes the locks: first those that the context holds, then the others. It waits without holding any of
// these as many times as there are of them: others need locks with which it does nothing. Then it keeps
// some for a while: it might never find all of them free.
func (a *multiCall) run(cs []*lockCall) error {
	var others []*lockCall
	for _, c := range cs {
		outer, err := c.held()
		if outer == nil && err == nil {
			others = append(others, c)
			continue
		}
		n := a.wants(c)
		var k *Lock
		if err == nil {
			k, err = c.reenter(outer)
		}
		if err := a.add(k, err, n); err != nil {
			return err
		}
	}
	a.entered = len(a.locks)
	if len(others) == 0 {
		return nil
	}
	if !a.locker.admit() {
		return a.add(nil, closedError("taking", others[0].name.Key()), a.wants(others[0]))
	}
	defer a.locker.underWay.End()
	for waits := 0; ; waits++ {
		keeps := waits >= len(others)
		first, err := a.try(a.missing(others), keeps)
		switch {
		case first == nil:
			return nil
		case err != nil:
			return a.add(nil, err, a.wants(first))
		}
		if err := a.waitFor(first); err != nil {
			return err
		}
		isDone(a.under(), a.givenBack) // what is on its way back is busy
	}
}

// missing are those whose locks the call does not have.
func (a *multiCall) missing(cs []*lockCall) []*lockCall {
	return slices.DeleteFunc(slices.Clone(cs), func(c *lockCall) bool {
		return slices.ContainsFunc(a.locks[a.entered:], func(k *Lock) bool { return k.lease.name == c.name })
	})
}

// try asks for locks together. It returns the first that the call has not got, if any,
// and an error if the call does not wait for that one. Then the call has nothing, or with keeps what
// sorts before it.
func (a *multiCall) try(cs []*lockCall, keeps bool) (first *lockCall, err error) {
	if len(cs) == 0 {
		return nil, nil
	}
	had := len(a.locks)
	if a.under().Err() != nil {
		first, err = cs[0], gaveUpError(a.under(), cs[0].name.Key())
	} else if first = a.waitsAtOnce(cs, keeps); first == nil {
		first, err = a.ask(cs)
	}
	got := slices.Clone(a.locks[had:])
	if first != nil {
		a.keepBefore(first, keeps)
	}
	for _, k := range got {
		if slices.Contains(a.locks, k) {
			var n *observation
			k.ctx, n = a.locker.observe(k.ctx, k.Key(), a.keys, a.settings.Name, a.settings.Form.String())
			_, _ = k.observed(n, a.settings.Form, nil)
		}
	}
	return first, err
}

// waitsAtOnce returns a call for which there is nothing to ask: it is alone, and waits with all that the
// others have got, or others of this process wait for its lock.
func (a *multiCall) waitsAtOnce(cs []*lockCall, keeps bool) *lockCall {
	for _, c := range cs {
		_, queued := c.engine.queues.WaitFor(c.name.Lock())
		alone := len(cs) == 1 && (keeps || len(a.locks) == a.entered)
		if c.waits() && (alone || queued && !keeps) {
			return c
		}
	}
	return nil
}

// ask asks Redis for several locks together. It returns the first call that has not got its lock.
func (a *multiCall) ask(cs []*lockCall) (first *lockCall, err error) {
	claims := make([]*store.Claim, len(cs))
	for i, c := range cs {
		claims[i] = c.claimAlone()
	}
	a.locker.store.AcquireAll(a.under(), claims, func(i int, g store.Grant, failure error) {
		c := cs[i]
		c.ctx = a.under()
		k, busy, failure := c.conclude(claims[i], g, failure)
		if first == nil {
			k, busy, failure = c.orResume(k, busy, failure)
		}
		switch {
		case k != nil:
			a.locks = append(a.locks, k)
		case first != nil:
		case busy != nil && !c.waits():
			first, err = c, c.refuse(notWaiting, taken(busy))
		default:
			first, err = c, failure
		}
	})
	return first, err
}

// keepBefore gives back what the call has taken, but with keeps what sorts before the lock of a call.
func (a *multiCall) keepBefore(c *lockCall, keeps bool) {
	kept, spare := slices.Clone(a.locks[:a.entered]), []*Lock(nil)
	for _, k := range a.locks[a.entered:] {
		if keeps && k.lease.name.Lock() < c.name.Lock() {
			kept = append(kept, k)
		} else {
			spare = append(spare, k)
		}
	}
	a.giveBack(spare)
	a.locks = kept
}

// waitFor waits for a lock. When that has taken half as long as all waits before, the call gives back what it
// holds, and waits on. So it keeps nobody from a lock for the whole of a [Wait], and keeps its locks
// for longer each time.
func (a *multiCall) waitFor(c *lockCall) error {
	n := a.wants(c)
	gone := make(chan struct{})
	held := a.locks[a.entered:]
	bound := time.AfterFunc(max(a.group.waited()/2, keepAtLeast), func() {
		a.giveBack(held)
		close(gone)
	})
	k, err := c.obtain()
	if !bound.Stop() {
		<-gone
		a.locks = slices.Clone(a.locks[:a.entered])
	}
	return a.add(k, err, n)
}

// giveBack releases locks in the background.
func (a *multiCall) giveBack(locks []*Lock) {
	if len(locks) == 0 {
		return
	}
	l, before, done := a.locker, a.givenBack, make(chan struct{})
	a.givenBack = done
	l.requests.Start(func() {
		defer close(done)
		_ = l.finishAll(context.Background(), locks, true) // what is not confirmed is compensated
		<-before
	})
}

// wants notifies Observers that the call wants a lock, under the context of what it has.
func (a *multiCall) wants(c *lockCall) (n *observation) {
	c.ctx, n = c.engine.observe(a.under(), c.name.Key(), a.keys, c.settings.Name, c.settings.Form.String())
	return n
}

// add takes what came of that: the lock, or an error, which is why a lock that the call had has
// ended, if one has.
func (a *multiCall) add(k *Lock, err error, n *observation) error {
	if err != nil && errors.Is(err, context.Canceled) && a.caller.Err() == nil && a.base.Err() != nil {
		err = context.Cause(a.base)
	}
	k, err = k.observed(n, a.settings.Form, err)
	if err == nil {
		a.locks = append(a.locks, k)
	}
	return err
}
