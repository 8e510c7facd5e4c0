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

// LockAll takes the locks of all keys, or none. Keys that are given twice count once; keys
// that ctx holds are entered once more.
//
// What is free it takes at once. When one is busy it gives the others back, waits for that one as
// [Locker.Lock] does, in order of arrival, and then asks for the others again. When it has waited as
// many times as there are keys, it keeps those that sort before the one that it waits for, by the
// bytes of their names in Redis, for half as long as it has waited by then; after that it
// waits on without them. So calls of LockAll do not wait for one another in a circle, and a key is not taken from
// others for as long as another one is busy. [Wait] is for the whole; so is the
// lease for which a call waits whose ctx holds another lock. Each lock has a lease and a
// token of its own, and is renewed from the time at which it was taken, as a [FixedLease], [MaxHold]
// and the window of [KeepFor] begin then.
//
// To keep to the order, a lock that sorts before one that ctx holds is not waited for: if it
// is busy the call fails at once with [*BusyError]. This is so for LockAll under any lock, and for Lock
// under locks of LockAll.
//
// Errors are those of [Locker.Lock], with the key that has failed; [ErrInvalidKey]
// also for no keys, and for more than 64; [ErrLost] and [ErrMaxHold] also when a lock that was
// taken has ended while the call waited for the others. Whatever the error, none of
// them stays locked.
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
func (a *multiCall) calls(keys []string) ([]*call, error) {
	l, s := a.locker, a.settings
	all, cs := make([]call, len(keys)), make([]*call, len(keys))
	for i, key := range keys {
		n, err := l.nameOf(key)
		if err != nil {
			return nil, err
		}
		all[i] = call{engine: &l.engine, group: a.group, want: want{ctx: a.base, name: n, settings: s, form: s.Form, owner: s.Owner}}
		cs[i] = &all[i]
	}
	slices.SortFunc(cs, func(x, y *call) int { return cmp.Compare(x.name.Lock(), y.name.Lock()) })
	cs = slices.CompactFunc(cs, func(x, y *call) bool { return x.name == y.name })
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

// run takes the locks: first those that the context holds, then the others. As many times as there are of
// these the call waits without holding any, or it would keep others from locks that it does nothing with.
// After that it keeps, for a while, those that sort before the one that it waits for: it might never
// find all of them free.
func (a *multiCall) run(cs []*call) error {
	var others []*call
	for _, c := range cs {
		outer, err := c.held()
		if outer == nil && err == nil {
			others = append(others, c)
			continue
		}
		i := a.wants(c)
		var k *Lock
		if err == nil {
			k, err = c.reenter(outer)
		}
		if err := a.add(k, err, i); err != nil {
			return err
		}
	}
	a.entered = len(a.locks)
	if len(others) == 0 {
		return nil
	}
	if !a.locker.admit() {
		return a.add(nil, closed("taking", others[0].name.Key()), a.wants(others[0]))
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
func (a *multiCall) missing(cs []*call) []*call {
	return slices.DeleteFunc(slices.Clone(cs), func(c *call) bool {
		return slices.ContainsFunc(a.locks[a.entered:], func(k *Lock) bool { return k.lease.name == c.name })
	})
}

// try asks for locks together. It returns the first that the call has not got, if any,
// and an error if that one is not to be waited for. Then the call has nothing, or with keeps what
// sorts before the first.
func (a *multiCall) try(cs []*call, keeps bool) (first *call, err error) {
	if len(cs) == 0 {
		return nil, nil
	}
	had := len(a.locks)
	if a.under().Err() != nil {
		first, err = cs[0], gaveUp(a.under(), cs[0].name.Key())
	} else if first = a.waitsAtOnce(cs, keeps); first == nil {
		first, err = a.ask(cs)
	}
	got := slices.Clone(a.locks[had:])
	if first != nil {
		a.keepBefore(first, keeps)
	}
	for _, k := range got {
		if slices.Contains(a.locks, k) {
			var i *inquiry
			k.ctx, i = a.locker.wanted(k.ctx, k.Key(), a.keys, a.settings)
			_, _ = k.ofInquiry(i, a.settings.Form, nil)
		}
	}
	return first, err
}

// waitsAtOnce returns a call for which there is nothing to ask: it is alone, and waits with all that the
// others have got, or others of this process wait for its lock.
func (a *multiCall) waitsAtOnce(cs []*call, keeps bool) *call {
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
func (a *multiCall) ask(cs []*call) (first *call, err error) {
	claims := make([]store.Claim, len(cs))
	for i, c := range cs {
		claims[i] = c.claimAlone()
	}
	a.locker.store.AcquireAll(a.under(), claims, func(i int, g store.Grant, failure error) {
		c := cs[i]
		c.ctx = a.under()
		k, busy, failure := c.conclude(&claims[i], g, failure)
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
func (a *multiCall) keepBefore(c *call, keeps bool) {
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

// waitFor waits for a lock. What it holds meanwhile it gives back when it has waited half as long again
// as before, and waits on: nobody is kept from a lock for the whole of a [Wait], and a call that
// does not find all free keeps them for longer each time.
func (a *multiCall) waitFor(c *call) error {
	i := a.wants(c)
	held := slices.Clone(a.locks[a.entered:])
	if len(held) == 0 {
		k, err := c.obtain()
		return a.add(k, err, i)
	}
	gone := make(chan struct{})
	bound := time.AfterFunc(max(a.group.waited()/2, keepAtLeast), func() {
		a.giveBack(held)
		close(gone)
	})
	k, err := c.obtain()
	if !bound.Stop() {
		<-gone
		a.locks = slices.Clone(a.locks[:a.entered])
	}
	return a.add(k, err, i)
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
func (a *multiCall) wants(c *call) (i *inquiry) {
	c.ctx, i = c.engine.wanted(a.under(), c.name.Key(), a.keys, c.settings)
	return i
}

// add takes what came of that: the lock, or an error, which is why a lock that the call had has
// ended, if one has.
func (a *multiCall) add(k *Lock, err error, i *inquiry) error {
	if err != nil && errors.Is(err, context.Canceled) && a.caller.Err() == nil && a.base.Err() != nil {
		err = context.Cause(a.base)
	}
	k, err = k.ofInquiry(i, a.settings.Form, err)
	if err == nil {
		a.locks = append(a.locks, k)
	}
	return err
}
