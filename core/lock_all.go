package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
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
	m := &MultiLock{locker: l, began: time.Now()}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	a := &multiCall{m: m, caller: ctx, settings: s, givenBack: make(chan struct{})}
	close(a.givenBack)
	cs, err := a.calls(keys)
	if err == nil {
		err = a.run(cs)
	}
	if err != nil {
		a.giveBack(m.locks)
		isDone(ctx, a.givenBack)
		m.cancel(nil)
		return nil, err
	}
	return m, nil
}

// multiCall is a call of LockAll.
type multiCall struct {
	m         *MultiLock // what it has so far
	caller    context.Context
	settings  *settings
	keys      int             // that it wants
	entered   int             // locks that the caller's context holds
	base      context.Context // under which it holds nothing else
	givenBack chan struct{}   // closed when locks are that were to be
}

// calls are those for the keys, in the order in which they are waited for.
func (a *multiCall) calls(keys []string) ([]*call, error) {
	l, s := a.m.locker, a.settings
	all, cs := make([]call, len(keys)), make([]*call, len(keys))
	for i, key := range keys {
		n, err := l.name(key)
		if err != nil {
			return nil, err
		}
		all[i] = call{locker: l, ctx: a.m.ctx, name: n, settings: s, form: s.Form, owner: s.Owner, multi: a.m}
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

// run takes the locks: first those that the context holds.
func (a *multiCall) run(cs []*call) error {
	var free []*call
	for _, c := range cs {
		outer, err := c.held()
		if outer == nil && err == nil {
			free = append(free, c)
			continue
		}
		tell := a.wants(c)
		var k *Lock
		if err == nil {
			k, err = c.reenter(outer)
		}
		if err := a.ended(k, err, tell); err != nil {
			return err
		}
	}
	a.entered, a.base = len(a.m.locks), a.m.ctx
	if len(free) == 0 {
		return nil
	}
	l := a.m.locker
	if !l.enter() {
		tell := a.wants(free[0])
		return a.ended(nil, closed("taking", free[0].name.Key()), tell)
	}
	defer l.underWay.End()
	l.compareClocks()
	return a.take(free)
}

// take takes locks that the context does not hold. As many times as there are of them the call
// waits without holding any, or it would keep others from locks that it does nothing with. After
// that it keeps, for a while, those that sort before the one that it waits for: it might never
// find all of them free.
func (a *multiCall) take(cs []*call) error {
	for waits := 0; ; waits++ {
		c, err := a.try(cs, waits >= len(cs))
		switch {
		case err != nil:
			tell := a.wants(c)
			return a.ended(nil, err, tell)
		case c == nil:
			return nil
		}
		if err := a.wait(c); err != nil {
			return err
		}
		isDone(a.m.ctx, a.givenBack) // what is on its way back is busy
	}
}
