package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// try asks for all that the call does not have. It returns the first that it has not got, if any,
// and an error if that one is not to be waited for. Then the call has nothing, or with
// keeps what sorts before the first.
func (a *multiCall) try(cs []*call, keeps bool) (first *call, err error) {
	cs = slices.DeleteFunc(slices.Clone(cs), func(c *call) bool {
		return slices.ContainsFunc(a.m.locks[a.entered:], func(k *Lock) bool { return k.lease.name == c.name })
	})
	if len(cs) == 0 {
		return nil, nil
	}
	var got []*Lock
	if a.m.ctx.Err() != nil {
		first, err = cs[0], gaveUp(a.m.ctx, cs[0].name.Key())
	} else if first = a.waitsAtOnce(cs, keeps); first == nil {
		got, first, err = a.ask(cs)
	}
	if first != nil {
		var spare []*Lock
		kept := slices.Clone(a.m.locks[:a.entered])
		for _, k := range a.m.locks[a.entered:] {
			if keeps && k.lease.name.Lock() < first.name.Lock() {
				kept = append(kept, k)
			} else {
				spare = append(spare, k)
			}
		}
		a.giveBack(spare)
		a.m.locks = kept
		if len(kept) == a.entered {
			a.m.ctx = a.base
		}
	}
	for _, k := range got {
		if a.m.locker.defaults.Observers != nil && slices.Contains(a.m.locks, k) {
			var tell func(*Lock, error)
			k.ctx, tell = a.m.locker.tellWaiting(k.ctx, k.Key(), a.keys, a.settings)
			tell(k, nil)
			a.m.ctx = k.ctx
		}
	}
	return first, err
}

// waitsAtOnce returns a call for which there is nothing to ask: it is alone, and waits with all that the
// others have got, or others of this process wait for its lock.
func (a *multiCall) waitsAtOnce(cs []*call, keeps bool) *call {
	for _, c := range cs {
		_, queued := a.m.locker.queues.WaitFor(c.name.Lock())
		alone := len(cs) == 1 && (keeps || len(a.m.locks) == a.entered)
		if c.waits() && (alone || queued && !keeps) {
			return c
		}
	}
	return nil
}

// ask asks Redis for several locks together. It returns those that it has got, and the first call that
// has not got its lock.
func (a *multiCall) ask(cs []*call) (got []*Lock, first *call, err error) {
	claims := make([]store.Claim, len(cs))
	for i, c := range cs {
		claims[i] = c.claim(nil)
	}
	a.m.locker.store.AcquireAll(a.m.ctx, claims, func(i int, g store.Grant, failure error) {
		c := cs[i]
		c.ctx = a.m.ctx
		k, busy, failure := c.conclude(nil, nil, &claims[i], g, failure)
		if first == nil {
			k, busy, failure = c.orResume(k, busy, failure)
		}
		switch {
		case k != nil:
			got, a.m.locks, a.m.ctx = append(got, k), append(a.m.locks, k), k.ctx
		case first != nil:
		case busy != nil && !c.waits():
			first, err = c, c.refuse(notWaiting, taken(busy))
		default:
			first, err = c, failure
		}
	})
	return got, first, err
}

// wait waits for a lock. What it holds meanwhile it gives back when it has waited half as long again
// as before, and waits on: nobody is kept from a lock for the whole of a [Wait], and a call that
// does not find all free keeps them for longer each time.
func (a *multiCall) wait(c *call) error {
	tell := a.wants(c)
	held := slices.Clone(a.m.locks[a.entered:])
	if len(held) == 0 {
		k, err := c.obtain()
		return a.ended(k, err, tell)
	}
	gone := make(chan struct{})
	bound := time.AfterFunc(max(a.m.waited()/2, keepAtLeast), func() {
		a.giveBack(held)
		close(gone)
	})
	k, err := c.obtain()
	if !bound.Stop() {
		<-gone
		a.m.locks = slices.Clone(a.m.locks[:a.entered])
	}
	return a.ended(k, err, tell)
}

// giveBack releases locks in the background.
func (a *multiCall) giveBack(locks []*Lock) {
	if len(locks) == 0 {
		return
	}
	l, before, done := a.m.locker, a.givenBack, make(chan struct{})
	a.givenBack = done
	l.requests.Start(func() {
		defer close(done)
		_ = l.finishAll(context.Background(), locks, true) // what is not confirmed is compensated
		<-before
	})
}

// wants has Observers hear that the call wants a lock, under the context of what it has. It returns
// what tells them of the outcome.
func (a *multiCall) wants(c *call) (tell func(*Lock, error)) {
	if c.ctx = a.m.ctx; c.locker.defaults.Observers != nil {
		c.ctx, tell = c.locker.tellWaiting(c.ctx, c.name.Key(), a.keys, c.settings)
	}
	return tell
}

// ended takes what came of that: the lock, or an error, which is why a lock that the call had has
// ended, if one has.
func (a *multiCall) ended(k *Lock, err error, tell func(*Lock, error)) error {
	if err != nil {
		if errors.Is(err, context.Canceled) && a.caller.Err() == nil && a.m.ctx.Err() != nil {
			err = context.Cause(a.m.ctx)
		}
		err = ofForm(a.settings.Form, err)
	}
	if tell != nil {
		tell(k, err)
	}
	if err == nil {
		a.m.locks, a.m.ctx = append(a.m.locks, k), k.ctx
	}
	return err
}
