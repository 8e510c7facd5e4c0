package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

const (
	// keepAtLeast is the least for which a call keeps locks while it waits: many times what others need to ask for some.
	keepAtLeast = 100 * time.Millisecond
	// A call that got none of several locks asks again for so long, after random times below these, doubling.
	asksFor     = 300 * time.Millisecond
	askDelay    = time.Millisecond
	askDelayMax = 16 * time.Millisecond
	// maxAsking is how many calls of a Locker do so at a time.
	maxAsking = 32
)

// LockAll takes the locks of all keys, or none. A key that is given twice counts once. A key that
// ctx holds is entered once more.
//
// The call asks for all of them at once. While a key is busy, it holds none, and asks again after a few milliseconds. When it has done
// so for 0.3 s, it waits for the busy one as [Locker.Lock] does, and then asks for the others. After as many such waits as there are
// keys it keeps those that sort before the busy one, by the bytes of their names in Redis, for half as long as it has waited; then it
// waits on without them. So calls of LockAll do not wait for one another in a cycle, and no key stays taken for as long as another one
// is busy. [Wait], or the lease where ctx holds another lock, bounds the whole; after that it takes four times [Timeout] at most, where
// Redis is slow or its connections break. Each lock has a lease and a token of its own; [FixedLease], [MaxHold] and the window of
// [KeepFor] count from when it was taken.
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
	a := &multiCall{locker: l, caller: ctx, base: base, settings: s, group: &group{cancel: cancel, began: time.Now()}}
	cs, err := a.calls(keys)
	if err == nil {
		err = a.run(cs)
	}
	if err != nil {
		a.giveBack(a.locks)
		isDone(ctx, a.back.None())
		cancel(nil)
		return nil, err
	}
	return &MultiLock{locker: l, locks: a.locks, ctx: a.under(), cancel: cancel}, nil
}

// multiCall is a call of LockAll.
type multiCall struct {
	locker   *Locker
	caller   context.Context
	base     context.Context // that of the caller, until a lock ends
	settings *settings
	group    *group
	keys     int            // that it wants
	locks    []*Lock        // that it has, each under the context of the one before
	entered  int            // how many of these the caller's context holds
	inside   bool           // of other locks
	delay    time.Duration  // before the next one
	back     schedule.Count // what is on its way back
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
	names, err := a.locker.namesOf(keys)
	if err != nil {
		return nil, err
	}
	a.keys, a.locks = len(names), make([]*Lock, 0, len(names))
	all, cs := make([]lockCall, len(names)), make([]*lockCall, len(names))
	for i, n := range names {
		s := a.settings
		all[i] = lockCall{engine: &a.locker.engine, group: a.group, want: wanted(a.base, n, s)}
		if cs[i] = &all[i]; i == 0 && cs[i].inner() != nil {
			cs[i].boundWait()
			a.settings, a.inside = cs[i].settings, true
		}
	}
	return cs, nil
}

// run takes the locks: first those that the context holds, then the others. It waits without holding any of these as many times as there
// are of them: others need locks with which it does nothing. Then it keeps some for a while: it might never find all of them free.
func (a *multiCall) run(cs []*lockCall) error {
	var others []*lockCall
	for _, c := range cs {
		c.ctx = a.under()
		switch k, err := c.enterOuter(); {
		case err != nil:
			return a.add(nil, err, a.wants(c))
		case k == nil:
			others = append(others, c)
		default:
			a.took(k)
			a.locks = append(a.locks, k)
		}
	}
	if a.entered = len(a.locks); len(others) == 0 {
		return nil
	}
	if !a.locker.admit() {
		return a.add(nil, closedError("taking", others[0].name.Key()), a.wants(others[0]))
	}
	defer a.locker.underWay.End()
	for waits := 0; ; {
		first, err := a.try(a.missing(others), waits >= len(others))
		switch wait := a.settings.Wait; {
		case first == nil:
			return nil
		case err == store.ErrWithheld && (wait == nil || a.group.waited()-a.locker.timeout < *wait):
			a.pause()
			continue
		case err == store.ErrWithheld: // connections break again and again
			err = unavailableError("taking", first.name.Key(), conn.ErrNoAnswer)
			fallthrough
		case err != nil:
			return a.add(nil, err, a.wants(first))
		}
		if err := a.waitFor(first); err != nil {
			return err
		}
		isDone(a.under(), a.back.None()) // what is on its way back is busy
		waits++
	}
}

// asksFor is for how long the call asks again for all or none, before it waits in queues: most calls that were served in the queue
// of one lock would find another one busy. MaxWaiters does not count those that ask: under a small one none does.
func (a *multiCall) asksFor() time.Duration {
	waited := a.group.waited()
	left := asksFor - waited
	if wait := a.settings.Wait; wait != nil {
		left = min(left, *wait-waited)
	}
	if most := a.settings.MaxWaiters; a.inside || most != nil && *most < maxAsking {
		return 0
	}
	return left
}

// pause is before the next question for all or none.
func (a *multiCall) pause() {
	a.locker.asking.Add(1)
	defer a.locker.asking.Add(-1)
	a.delay = min(2*a.delay+askDelay, askDelayMax)
	_ = conn.Pause(a.base, min(rand.N(a.delay), max(a.asksFor(), askDelay))) // never without a pause
}

// missing are those whose locks the call does not have.
func (a *multiCall) missing(cs []*lockCall) []*lockCall {
	return slices.DeleteFunc(slices.Clone(cs), func(c *lockCall) bool {
		return slices.ContainsFunc(a.locks[a.entered:], func(k *Lock) bool { return k.lease.name == c.name })
	})
}

// try asks for locks together. It returns the first that the call has not got, if any, and an error if the call does not wait for that
// one. Then the call has nothing, or with keeps what sorts before it.
func (a *multiCall) try(cs []*lockCall, keeps bool) (first *lockCall, err error) {
	if len(cs) == 0 {
		return nil, nil
	}
	had := len(a.locks)
	if a.under().Err() != nil {
		first, err = cs[0], gaveUpError(a.under(), cs[0].name.Key())
	} else if a.locker.isClosing() {
		first, err = cs[0], closedError("waiting for", cs[0].name.Key())
	} else if first = a.waitsAtOnce(cs, keeps); first == nil {
		first, err = a.ask(cs, !keeps)
	}
	kept, spare := a.locks[:a.entered], []*Lock(nil)
	for i, k := range a.locks[a.entered:] {
		if first != nil && !(keeps && k.lease.name.Lock() < first.name.Lock()) {
			spare = append(spare, k)
			continue
		}
		if a.entered+i >= had {
			a.took(k)
		}
		kept = append(kept, k)
	}
	a.locks = kept
	a.giveBack(spare)
	return first, err
}

// waitsAtOnce returns a call for which there is nothing to ask: it is alone, and waits with all that the
// others have got, or others of this process wait for its lock, or are giving it up.
func (a *multiCall) waitsAtOnce(cs []*lockCall, keeps bool) *lockCall {
	alone := len(cs) == 1 && (keeps || len(a.locks) == a.entered)
	for _, c := range cs {
		_, queued := c.engine.queues.WaitFor(c.name.Lock())
		givingUp := c.engine.givingUp.of(c.name.Lock()) != nil
		if !c.waits() && givingUp || c.waits() && (alone || queued && !keeps) {
			return c
		}
	}
	return nil
}

// ask asks Redis for several locks together, for all or none if it may ask again. It returns the first call that has not got its lock.
func (a *multiCall) ask(cs []*lockCall, again bool) (first *lockCall, err error) {
	e := &a.locker.engine
	again = again && a.asksFor() > 0 && e.asking.Load() < maxAsking
	claims, hold := make([]store.Claim, len(cs)), e.store.NewHold()
	for i, c := range cs {
		c.claimIn(&claims[i], hold, store.NotWaiting)
	}
	var room []held
	e.store.AcquireAll(a.under(), claims, again, func(i int, g store.Grant, failure error) {
		c := cs[i]
		c.ctx = a.under()
		if failure == nil && room == nil {
			room = make([]held, len(cs))
		}
		if failure == nil {
			c.room = &room[i]
		}
		k, busy, failure := c.conclude(&claims[i], g, failure)
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

// waitFor waits for a lock. When that has taken half as long as all waits before, the call gives back what it holds, and waits on. So it
// keeps nobody from a lock for the whole of a [Wait], and keeps its locks for longer each time.
func (a *multiCall) waitFor(c *lockCall) error {
	n, held, gone := a.wants(c), a.locks[a.entered:], make(chan struct{})
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

// wants notifies Observers that the call wants a lock, under the context of what it has.
func (a *multiCall) wants(c *lockCall) (n *observation) {
	c.ctx, n = c.engine.observe(a.under(), c.name.Key(), a.keys, c.settings.Name, c.settings.Form.Label())
	return n
}

// took notifies Observers of a lock that the call has got.
func (a *multiCall) took(k *Lock) {
	var n *observation
	k.ctx, n = a.locker.observe(k.ctx, k.Key(), a.keys, a.settings.Name, a.settings.Form.Label())
	_, _ = k.observed(n, a.settings.Form, nil)
}

// add takes what came of that: the lock, or an error, which is why a lock that the call had has ended, if one has.
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
