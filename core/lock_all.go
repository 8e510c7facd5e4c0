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

// maxKeys is how many locks a call may want at once.
const maxKeys = 64

// LockAll takes the locks of all keys, or none. Keys that are given twice count once; keys
// that ctx holds are entered once more.
//
// What is free it takes at once. When some are busy it keeps those that sort before the first
// busy one, by the bytes of their names in Redis, gives the others back, waits for that one as
// [Locker.Lock] does, in order of arrival, and goes on from there. All take them in this order, so
// calls of LockAll never wait for one another in a circle. [Wait] is for the whole; so is the
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
	a := &multiCall{m: &MultiLock{locker: l, ctx: ctx, began: time.Now()}, settings: s}
	cs, err := a.calls(ctx, keys)
	if err != nil {
		return nil, err
	}
	if err := a.run(cs); err != nil {
		isDone(ctx, a.giveBack(a.m.locks))
		return nil, err
	}
	return a.m, nil
}

// multiCall is a call of LockAll.
type multiCall struct {
	m         *MultiLock // what it has so far
	settings  *settings
	keys      int                // that it wants
	next      *call              // of which Observers have heard
	tell      func(*Lock, error) // tells them its outcome; nil: there are none
	givenBack <-chan struct{}    // closed when locks are that were to be; nil: there were none
}

// calls are those for the keys, in the order in which they are waited for.
func (a *multiCall) calls(ctx context.Context, keys []string) ([]*call, error) {
	l, s := a.m.locker, a.settings
	all, cs := make([]call, len(keys)), make([]*call, len(keys))
	for i, key := range keys {
		n, err := l.name(key)
		if err != nil {
			return nil, err
		}
		all[i] = call{locker: l, ctx: ctx, name: n, settings: s, form: s.Form, owner: s.Owner, multi: a.m}
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
		a.turnTo(c)
		var k *Lock
		if err == nil {
			k, err = c.reenter(outer)
		}
		if err := a.ended(k, err); err != nil {
			return err
		}
	}
	if len(free) == 0 {
		return nil
	}
	l := a.m.locker
	a.turnTo(free[0])
	if !l.enter() {
		return a.ended(nil, closed("taking", free[0].name.Key()))
	}
	defer l.underWay.End()
	l.compareClocks()
	return a.take(free)
}

// take takes locks that the context does not hold: what is free together, and then the
// first that is not.
func (a *multiCall) take(cs []*call) error {
	for len(cs) > 0 {
		var busy *store.Busy
		var err error
		if ctx := a.m.ctx; ctx.Err() != nil {
			err = gaveUp(ctx, cs[0].name.Key())
		} else if !a.waitsAtOnce(cs) {
			cs, busy, err = a.tryAll(cs)
		}
		if len(cs) == 0 {
			break
		}
		c := cs[0]
		a.turnTo(c)
		var k *Lock
		switch {
		case err != nil:
		case busy != nil && !c.waits():
			err = c.refuse(notWaiting, taken(busy))
		default:
			k, err = c.obtain()
		}
		if err := a.ended(k, err); err != nil {
			return err
		}
		cs = cs[1:]
	}
	return nil
}

// waitsAtOnce says that there is nothing to try: one lock is left, or others of this process
// wait for the first.
func (a *multiCall) waitsAtOnce(cs []*call) bool {
	_, queued := a.m.locker.queues.WaitFor(cs[0].name.Lock())
	return cs[0].waits() && (len(cs) == 1 || queued)
}

// tryAll tries to take all, and keeps what it gets up to the first that it does not. It returns
// the rest, and why it has not got the first of them.
func (a *multiCall) tryAll(cs []*call) (rest []*call, busy *store.Busy, err error) {
	l := a.m.locker
	claims := make([]store.Claim, len(cs))
	for i, c := range cs {
		claims[i] = c.claim(nil)
	}
	got := 0
	var spare []*Lock
	l.store.AcquireAll(a.m.ctx, claims, func(i int, g store.Grant, failure error) {
		c, inOrder := cs[i], i == got
		if inOrder {
			a.turnTo(c)
		}
		k, by, failure := c.conclude(nil, nil, &claims[i], g, failure)
		if inOrder {
			k, by, failure = c.orResume(k, by, failure)
		}
		switch {
		case inOrder && k != nil:
			got++
			_ = a.ended(k, nil)
		case inOrder:
			busy, err = by, failure
		case k != nil:
			spare = append(spare, k)
		}
	})
	if spare != nil {
		a.giveBack(spare)
	}
	return cs[got:], busy, err
}

// giveBack releases locks in the background. It returns what is closed when that has ended, and
// what was given back before.
func (a *multiCall) giveBack(locks []*Lock) <-chan struct{} {
	l, before, done := a.m.locker, a.givenBack, make(chan struct{})
	a.givenBack = done
	l.requests.Start(func() {
		defer close(done)
		_ = l.finishAll(context.Background(), locks, true) // what is not confirmed is compensated
		if before != nil {
			<-before
		}
	})
	return done
}

// turnTo has the call want one of the locks.
func (a *multiCall) turnTo(c *call) {
	if a.next == c {
		return
	}
	a.next, c.ctx = c, a.m.ctx
	if c.locker.defaults.Observers != nil {
		c.ctx, a.tell = c.locker.tellWaiting(c.ctx, c.name.Key(), a.keys, c.settings)
	}
}

// ended takes what came of that: the lock, or an error, which is that of a lock that
// the call had if it has lost one.
func (a *multiCall) ended(k *Lock, err error) error {
	if err != nil {
		if loss := a.m.usable(); loss != nil {
			err = loss
		}
		err = ofForm(a.settings.Form, err)
	}
	if a.tell != nil {
		a.tell(k, err)
	}
	if err == nil {
		a.m.locks, a.m.ctx = append(a.m.locks, k), k.ctx
	}
	return err
}
