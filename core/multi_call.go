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
	// A call asks again for all of its locks or none for so long, after random times below these, doubling.
	askAgainFor      = 300 * time.Millisecond
	askAgainDelay    = time.Millisecond
	askAgainDelayMax = 16 * time.Millisecond
	// maxAsking is how many calls of a Locker do so at a time.
	maxAsking = 32
)

// multiCall is a call of LockAll. Each of its locks is under the context of the one before, the first under base.
type multiCall struct {
	locker     *Locker
	caller     context.Context
	base       context.Context // the caller's, which ends as soon as one of the locks does
	settings   *settings
	group      *group
	underLocks bool           // the caller's context holds locks
	keys       int            // so many it wants
	calls      []*lockCall    // one for each key, in the order of waiting; enterHeld leaves those for locks to take
	locks      []*Lock        // all that it has, as it got them
	entered    int            // so many of them, the first, the caller's context holds as well: the call gives none of these back
	waits      int            // so many are over, for one lock each
	pauseBelow time.Duration  // the last pause was shorter
	givingBack schedule.Count // releases under way, of locks that the call does not keep
}

// under is the context that holds what the call has.
func (a *multiCall) under() context.Context {
	if n := len(a.locks); n > 0 {
		return a.locks[n-1].ctx
	}
	return a.base
}

// taken are the locks that the call has, and the caller's context has not.
func (a *multiCall) taken() []*Lock { return a.locks[a.entered:] }

// takeAll enters the locks that the context holds, and takes the others. While one of these is busy, the call does the first of the
// following that it may:
//
//   - It asks again, for all or none (askUntilItMustWait). Most calls that wait in the queue of one lock would find another one busy
//     then. It may for a while (leftToAskAgain).
//   - It waits in the queue of the busy lock and holds no other (waitFor): it would do nothing with them, and others need them. Then it
//     asks for them. It may as many times as there are locks.
//   - It keeps some locks while it waits (keepsSome), for it might never find all of them free.
func (a *multiCall) takeAll() error {
	if err := a.enterHeld(); err != nil || len(a.calls) == 0 {
		return err
	}
	if !a.locker.register(nil) {
		return a.fail(a.calls[0], closedError("taking", a.calls[0].name.Key()))
	}
	defer a.locker.underWay.End()
	for {
		busy, err := a.askUntilItMustWait()
		if busy == nil || err != nil {
			return err
		}
		if err = a.waitFor(busy); err != nil {
			return err
		}
	}
}

// enterHeld enters the locks that the context holds, and leaves the calls for the others.
func (a *multiCall) enterHeld() error {
	others := a.calls[:0]
	for _, c := range a.calls {
		c.ctx = a.under()
		k, err := c.enterOuter()
		switch {
		case err == errNotEntered:
			others = append(others, c)
		case err != nil:
			return a.fail(c, err)
		default:
			a.observeTaken(k)
			a.locks = append(a.locks, k)
		}
	}
	a.calls, a.entered = others, len(a.locks)
	return nil
}

// keepsSome says that the call keeps, while a lock is busy, those that sort before it. All calls wait in that order, so none waits for
// another one in a circle.
func (a *multiCall) keepsSome() bool { return a.waits >= len(a.calls) }

// askUntilItMustWait asks for the locks that are missing, and asks again as long as it may. It returns a busy one, for which the call has
// to wait, or nil: it has all.
func (a *multiCall) askUntilItMustWait() (busy *lockCall, err error) {
	for busy, err = a.askOnce(); err == store.ErrWithheld; busy, err = a.askOnce() {
		if wait := a.settings.Wait; wait != nil && a.group.waited()-a.locker.timeout >= *wait { // connections break again and again
			err = unavailableError("taking", busy.name.Key(), conn.ErrNoAnswer)
			break
		}
		a.locker.asking.Add(1)
		a.pauseBelow = min(2*a.pauseBelow+askAgainDelay, askAgainDelayMax)
		_ = conn.Pause(a.base, min(rand.N(a.pauseBelow), max(a.leftToAskAgain(), askAgainDelay))) // never without a pause
		a.locker.asking.Add(-1)
	}
	if err != nil {
		return nil, a.fail(busy, err)
	}
	return busy, nil
}

// leftToAskAgain is for how long the call still asks again. MaxWaiters does not count calls that do so: under a small one none does. Nor
// does a call under other locks, which it keeps from others meanwhile.
func (a *multiCall) leftToAskAgain() time.Duration {
	if waiters := a.settings.MaxWaiters; a.underLocks || waiters != nil && *waiters < maxAsking {
		return 0
	}
	most := askAgainFor
	if wait := a.settings.Wait; wait != nil {
		most = min(most, *wait)
	}
	return most - a.group.waited()
}

// askOnce asks for the locks that are missing, unless one goes alone. It returns the first one that the call has not got, or nil, and an
// error if the call does not wait for it. What the call does not keep meanwhile it gives back.
func (a *multiCall) askOnce() (first *lockCall, err error) {
	had := len(a.taken())
	missing := slices.DeleteFunc(slices.Clone(a.calls), func(c *lockCall) bool {
		return slices.ContainsFunc(a.locks, func(k *Lock) bool { return k.lease.name == c.name }) || a.takesOver(c)
	})
	if len(missing) == 0 {
		// it has all
	} else if first = missing[0]; a.under().Err() != nil {
		first.ctx = a.under()
		err = first.gaveUp()
	} else if a.locker.isClosing() {
		err = closedError("waiting for", first.name.Key())
	} else if first = a.goesAlone(missing); first == nil {
		first, err = a.askRedis(missing)
	}
	kept, spare := a.locks[:a.entered], []*Lock(nil)
	for i, k := range a.taken() {
		if first != nil && !(a.keepsSome() && k.lease.name.Lock() < first.name.Lock()) {
			spare = append(spare, k)
			continue
		}
		if kept = append(kept, k); i >= had {
			a.observeTaken(k)
		}
	}
	a.locks = kept
	a.giveBack(spare)
	return first, err
}

// goesAlone returns a call to wait for before Redis is asked for several locks, if there is one: the process is giving up its lock, or
// others of the process wait for it; or it is the last one, and nothing is to be given back while it waits.
func (a *multiCall) goesAlone(missing []*lockCall) *lockCall {
	isLast := len(missing) == 1 && (a.keepsSome() || len(a.taken()) == 0)
	for _, c := range missing {
		if !c.settings.Waits() && c.engine.givingUp.of(c.name.Lock()).releases > 0 {
			return c
		}
		if _, queued := c.engine.queues.WaitFor(c.name.Lock()); c.settings.Waits() && (isLast || queued && !a.keepsSome()) {
			return c
		}
	}
	return nil
}

// askRedis asks Redis for several locks together, for all or none if the call may ask again. It returns what askOnce does.
func (a *multiCall) askRedis(missing []*lockCall) (first *lockCall, err error) {
	e := &a.locker.engine
	allOrNone := !a.keepsSome() && a.leftToAskAgain() > 0 && e.asking.Load() < maxAsking
	claims, hold := make([]store.Claim, len(missing)), e.store.NewHold()
	for i, c := range missing {
		claims[i] = c.claim(hold, store.NotWaiting)
	}
	var memory []lockMemory
	for i, r := range e.store.AcquireAll(a.under(), claims, allOrNone) {
		c := missing[i]
		c.ctx = a.under()
		if r.Err == nil {
			if memory == nil {
				memory = make([]lockMemory, len(missing))
			}
			c.memory = &memory[i]
		}
		k, failure := c.readAnswer(&claims[i], r.Answer, r.Err)
		busy, isBusy := failure.(*store.Busy)
		switch {
		case k != nil:
			a.locks = append(a.locks, k)
		case first != nil:
		case isBusy && c.settings.Waits():
			first = c
		case isBusy:
			first, err = c, c.refuse(notWaiting, takenOf(busy))
		default:
			first, err = c, failure
		}
	}
	return first, err
}

// takesOver takes a lock over that the process is about to release. It is false when there is no such lock.
func (a *multiCall) takesOver(c *lockCall) bool {
	c.ctx = a.under()
	k := c.takeOver()
	if k != nil {
		a.locks = append(a.locks, k)
	}
	return k != nil
}

// waitFor waits for a lock and takes it. When that has taken half as long as the call had waited before, it gives back what it keeps, and
// waits on. So it keeps nobody from a lock for the whole of a [Wait], and keeps its locks for longer each time.
func (a *multiCall) waitFor(c *lockCall) error {
	waiting := *c // a call of its own, for who has found it in a queue may look at it later, when the other has another context
	c = &waiting
	n, kept, gone := a.observe(c), a.taken(), make(chan struct{})
	tooLong := time.AfterFunc(max(a.group.waited()/2, keepAtLeast), func() {
		a.giveBack(kept)
		close(gone)
	})
	k, err := c.waitSafely()
	if !tooLong.Stop() {
		<-gone
		a.locks = a.locks[:a.entered]
	}
	if err = a.add(k, err, n); err != nil {
		return err
	}
	isDone(a.under(), a.givingBack.None()) // until then it would find its own locks busy
	a.waits++
	return nil
}

// observe notifies Observers of a lock that the call wants, under the context of what it has.
func (a *multiCall) observe(c *lockCall) (n *observation) {
	c.ctx, n = c.engine.observe(a.under(), c.name.Key(), a.keys, c.settings.Name, c.settings.Form.Label())
	return n
}

// observeTaken notifies Observers of a lock that the call wanted, and has got at once.
func (a *multiCall) observeTaken(k *Lock) {
	var n *observation
	k.ctx, n = a.locker.observe(k.ctx, k.Key(), a.keys, a.settings.Name, a.settings.Form.Label())
	_, _ = k.observed(n, nil)
}

// add takes what came of a wait: a lock, or an error. It returns the error, or why a lock of the call has ended, if that is the reason.
func (a *multiCall) add(k *Lock, err error, n *observation) error {
	if err != nil && errors.Is(err, context.Canceled) && a.caller.Err() == nil && a.base.Err() != nil {
		err = context.Cause(a.base)
	}
	k, err = k.observed(n, err)
	if err == nil {
		a.locks = append(a.locks, k)
	}
	return err
}

// fail is add of an error that came without a wait.
func (a *multiCall) fail(c *lockCall, err error) error { return a.add(nil, err, a.observe(c)) }

// giveBack releases locks in the background.
func (a *multiCall) giveBack(locks []*Lock) {
	if len(locks) == 0 {
		return
	}
	m := &MultiLock{locker: a.locker, locks: slices.Clone(locks), cancel: func(error) {}} // the call may get others in their places
	a.givingBack.Begin()
	a.locker.requests.Start(func() {
		defer a.givingBack.End()
		_ = m.Abort(context.Background()) // what is not confirmed is compensated
	})
}
