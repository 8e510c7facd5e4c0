package core

import (
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

const (
	// A lost wake-up costs at most pollMax.
	pollMax = time.Second
	// Without wake-ups waiting calls ask again after these, doubling: a lock that is granted
	// to one of them lies idle until then.
	pollUnheard    = 20 * time.Millisecond
	pollUnheardMax = 150 * time.Millisecond
	// In a quorum contenders may each get a part of it; they come back after a
	// random time below these, or twice what the attempt took, doubling until the call
	// has the lock.
	splitDelay    = 4 * time.Millisecond
	splitDelayMax = 256 * time.Millisecond
)

// obtain takes a lock that the context does not hold.
func (c *lockCall) obtain() (*Lock, error) {
	var i *inner
	if c.waits() {
		i = c.inner()
	}
	if i == nil {
		return c.take()
	}
	if i.isOutOfOrder() {
		k, err := c.takeNow(outOfOrder)
		return k, i.noteHeld(err)
	}
	if err := i.begin(); err != nil {
		return nil, err
	}
	defer i.end()
	k, err := c.take()
	return k, i.noteHeld(err)
}

// take gets the lock for a caller that does not hold it.
func (c *lockCall) take() (*Lock, error) {
	e, wait := c.engine, c.settings.Wait
	if wait != nil && *wait == 0 {
		return c.takeNow(notWaiting)
	}
	if c.mayGoAtOnce() {
		k, b, err := c.try(nil)
		if b == nil {
			return k, err
		}
	} else if c.settings.Ticket != "" && e.queues.Has(c.name.Lock()) {
		// Only the head asks Redis, and cannot have the lock that was handed over to this call.
		if k, _, _ := c.resume(); k != nil {
			return k, nil
		}
	}
	w, by := e.queues.Join(c.name.Lock(), c.owner().Of(""), &c.want, c.settings.MaxWaiters)
	if w == nil {
		return nil, c.refuse(tooManyWaiting, by)
	}
	return c.queue(w)
}

// takeNow refuses the call while the lock is busy, but not by what this process is giving up: then it asks once more.
func (c *lockCall) takeNow(why refusal) (*Lock, error) {
	unconfirmed := c.engine.givingUp.of(c.name.Lock()) // before Redis is asked: what is confirmed later may be in the answer
	k, busy, err := c.try(nil)
	// Dead members of a quorum confirm nothing.
	if busy != nil && unconfirmed != nil && !c.engine.store.MinorityMayKeep() && unconfirmed.confirmed(c.ctx) {
		k, busy, err = c.try(nil)
	}
	if busy != nil {
		err = c.refuse(why, taken(busy))
	}
	return k, err
}

// mayGoAtOnce says that the call need not queue, perhaps: a chosen owner may hold the lock already,
// and there may be room beside others that share it or have permits.
func (c *lockCall) mayGoAtOnce() bool {
	switch {
	case !c.owner().Usual():
		return true
	case c.form.Alone():
		return false
	}
	_, waits := c.engine.queues.WaitFor(c.name.Lock())
	return !waits
}

// queue waits until the call is the head of its queue, then for the lock. The head asks
// Redis whenever the lock may have become free.
func (c *lockCall) queue(w *waiter) (*Lock, error) {
	e, wait := c.engine, c.settings.Wait
	var over <-chan time.Time
	pace, backOff := pollUnheard, time.Duration(0)
	delay := func(known waitqueue.State) time.Duration { return c.poll(known, &pace) }
	for {
		if waited, waits := w.Waited(); waits && wait != nil && over == nil { // most calls get the lock without a wait
			over = time.After(*wait - max(waited, c.group.waited()))
		}
		switch end := w.Wait(c.ctx, delay, over, e.closing); end.Ended {
		case waitqueue.Ask:
		case waitqueue.Given:
			k, err := c.receive(end.Lock)
			if err != nil {
				return nil, c.leave(w, err)
			}
			c.took(w, k)
			if c.ctx.Err() != nil {
				_ = k.finish(c.ctx, store.Failed, true)
				return nil, gaveUpError(c.ctx, c.name.Key())
			}
			return k, nil
		case waitqueue.Refused:
			return nil, end.Err
		default:
			return nil, c.leave(w, e.waitError(&c.want, end.Ended, end.State))
		}
		asked := time.Now()
		k, b, err := c.try(w)
		switch {
		case err == nil && b == nil:
			c.took(w, k)
			return k, nil
		case b != nil:
			if w.Busy(taken(b), c.settings.MaxWaiters, c.refuse(tooManyWaiting, taken(b))) {
				pace = pollUnheard
				e.listener.Watch(c.name.Lock(), c.name.Channel())
			}
			if b.Split { // contenders that block each other must not come back together
				backOff = min(max(2*backOff, splitDelay, 2*time.Since(asked)), splitDelayMax)
				e.queues.Signal(c.name.Lock(), rand.N(backOff))
			}
		default:
			final, forAll := e.goesOn(&c.want, w.Silent(asked), err) // silent for all calls of the queue
			switch {
			case forAll:
				c.leaveQueue(w.Dismiss(final))
				return nil, final
			case final != nil: // it may have failed for a reason of its own: the others try for themselves
				return nil, c.leave(w, final)
			}
		}
	}
}

// poll is how long to wait for a notification before asking again.
func (c *lockCall) poll(known waitqueue.State, pace *time.Duration) time.Duration {
	delay := pollMax/2 + rand.N(pollMax/2)
	e := c.engine
	if !known.Silence.IsZero() || !known.Local && (e.isDeaf(schedule.Now()) || !e.listener.Hears(c.name.Channel())) {
		delay = *pace/2 + rand.N(*pace/2)
		*pace = min(2**pace, pollUnheardMax)
	}
	if !known.Until.IsZero() && known.Silence.IsZero() {
		// Its end is known: nobody announces that a key has expired.
		delay = min(delay, max(time.Until(known.Until), 0)+2*time.Millisecond)
	}
	return delay
}

// took ends the wait of a call that has the lock.
func (c *lockCall) took(w *waiter, k *Lock) {
	c.leaveQueue(w.Took(k.lease.end(), k.lease.Fixed))
	if !c.form.Alone() { // there may be room for the next one
		c.engine.queues.Signal(c.name.Lock(), 0)
	}
}

// leave ends a wait in vain, and returns err.
func (c *lockCall) leave(w *waiter, err error) error {
	c.leaveQueue(w.Leave())
	return err
}

func (c *lockCall) leaveQueue(end waitqueue.End[*entry]) {
	if end.Notifications {
		c.engine.listener.Unwatch(c.name.Channel())
	}
	c.engine.giveUp(c.name, end.Entry)
}
