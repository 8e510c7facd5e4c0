package core

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
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
	// maxSilence is how long a waiting call endures that Redis fails.
	maxSilence = 5 * time.Second
	// busyFor is how long Redis may have failed when a wait ends, for the lock to be called
	// busy all the same.
	busyFor = time.Second
)

// take gets the lock for a caller that does not hold it.
func (c *call) take() (*Lock, error) {
	wait := c.settings.Wait
	if noWait := wait != nil && *wait == 0; noWait || c.mayGoAtOnce() {
		k, b, err := c.try(nil)
		if b == nil {
			return k, err
		}
		if noWait {
			return nil, c.refuse(notWaiting, taken(b))
		}
	} else if c.settings.Ticket != "" && c.locker.queues.Has(c.name.Lock()) {
		// Only the head asks Redis, and cannot have the lock that was handed over to this call.
		if k, _, _ := c.resume(); k != nil {
			return k, nil
		}
	}
	w, by := c.locker.queues.Join(c.name.Lock(), c.ownerOf(""), c, c.settings.MaxWaiters)
	if w == nil {
		return nil, c.refuse(tooManyWaiting, by)
	}
	var over <-chan time.Time
	if wait != nil {
		over = time.After(*wait - c.multi.waited())
	}
	return c.queue(w, over)
}

// mayGoAtOnce says that the call need not queue, perhaps: a chosen owner may hold the lock already,
// and there may be room beside others that share it or have permits.
func (c *call) mayGoAtOnce() bool {
	if c.form == store.Exclusive {
		return !c.isPlain()
	}
	_, waits := c.locker.queues.WaitFor(c.name.Lock())
	return !waits || !c.isPlain()
}

// queue waits until the call is the head of its queue, then for the lock. The head asks
// Redis whenever the lock may have become free.
func (c *call) queue(w *waiter, over <-chan time.Time) (*Lock, error) {
	l := c.locker
	pace, backOff := pollUnheard, time.Duration(0)
	delay := func(known waitqueue.State) time.Duration { return c.poll(known, &pace) }
	for {
		switch end := w.Wait(c.ctx, delay, over, l.closing); end.Ended {
		case waitqueue.Given:
			return c.passed(w, end.Lock)
		case waitqueue.Refused:
			return nil, end.Err
		case waitqueue.Done:
			return nil, c.leave(w, c.gaveUp(end.State))
		case waitqueue.Over:
			return nil, c.leave(w, c.waitOver(end.State))
		case waitqueue.Closing:
			return nil, c.leave(w, closed("waiting for", c.name.Key()))
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
				l.listener.Watch(c.name.Lock(), c.name.Channel())
			}
			if b.Split { // contenders that block each other must not come back together
				backOff = min(max(2*backOff, splitDelay, 2*time.Since(asked)), splitDelayMax)
				l.queues.Signal(c.name.Lock(), rand.N(backOff))
			}
		default:
			known := w.Silent(asked) // for all calls of the queue
			if final := c.giveUp(known, err); final != nil {
				if isNoAnswer(final) && time.Since(known.Silence) >= maxSilence {
					c.left(w.Dismiss(final))
					return nil, final
				}
				// It may have failed for a reason of its own: the others try for themselves.
				return nil, c.leave(w, final)
			}
		}
	}
}

// passed ends the wait with a lock that was passed on, or nil if the Locker closes.
func (c *call) passed(w *waiter, k *Lock) (*Lock, error) {
	if k == nil {
		return nil, c.leave(w, closed("waiting for", c.name.Key()))
	}
	c.took(w, k)
	if c.ctx.Err() != nil {
		k.drop()
		return nil, gaveUp(c.ctx, c.name.Key())
	}
	return k, nil
}

// giveUp says whether a failed attempt ends the wait of the call that made it: not when
// Redis has answered before and has been silent for a short time only.
func (c *call) giveUp(known waitqueue.State, err error) error {
	switch {
	case known.Answered && c.ctx.Err() != nil:
		return c.gaveUp(known)
	case !known.Answered, !errors.Is(err, ErrUnavailable), errors.Is(err, errLateGrant), conn.IsClosed(err), time.Since(known.Silence) >= maxSilence:
		return err
	default:
		return nil
	}
}

// isSilent says that nobody knows any more whether the lock that a call waits for is busy: for
// busyFor its queue has had nothing but errors, or no call of any lock has had an answer.
func (c *call) isSilent(known waitqueue.State) bool {
	return !known.Silence.IsZero() && time.Since(known.Silence) >= busyFor || c.locker.store.IsSilent(busyFor)
}

// waitOver is the error of a call whose wait is over.
func (c *call) waitOver(known waitqueue.State) error {
	if c.isSilent(known) {
		return unavailable("waiting for", c.name.Key(), conn.ErrNoAnswer)
	}
	return c.refuse(waitOver, known.Taken)
}

// gaveUp is the error of a waiting call whose context has ended.
func (c *call) gaveUp(known waitqueue.State) error {
	if errors.Is(c.ctx.Err(), context.DeadlineExceeded) && c.isSilent(known) {
		return unavailable("waiting for", c.name.Key(), conn.Ended(c.ctx))
	}
	return gaveUp(c.ctx, c.name.Key())
}

// isNoAnswer says that an attempt failed because nothing came back from Redis, as it
// would for the calls that wait behind.
func isNoAnswer(err error) bool {
	var network net.Error
	return errors.Is(err, conn.ErrNoAnswer) || errors.As(err, &network) || errors.Is(err, io.EOF)
}

// poll is how long to wait for a notification before asking again.
func (c *call) poll(known waitqueue.State, pace *time.Duration) time.Duration {
	delay := pollMax/2 + rand.N(pollMax/2)
	l := c.locker
	if !known.Silence.IsZero() || !known.Local && (l.isDeaf(schedule.Now()) || !l.listener.Hears(c.name.Channel())) {
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
func (c *call) took(w *waiter, k *Lock) {
	c.left(w.Took(k.lease.end(), k.lease.fixed))
	if c.form != store.Exclusive { // there may be room for the next one
		c.locker.queues.Signal(c.name.Lock(), 0)
	}
}

// leave ends a wait in vain, and returns err.
func (c *call) leave(w *waiter, err error) error {
	c.left(w.Leave())
	return err
}

func (c *call) left(end waitqueue.End[*position]) {
	if end.Notifications {
		c.locker.listener.Unwatch(c.name.Channel())
	}
	c.leaveQueue(end.Position)
}

func taken(b *store.Busy) waitqueue.Taken {
	return waitqueue.Taken{Until: b.Until, Exact: b.Exact, Done: b.Done}
}

// refuse makes the error for a lock that is busy, as far as is known.
func (c *call) refuse(refused refusal, by waitqueue.Taken) error {
	after := time.Until(by.Until)
	over := by.Done && after <= 0 // Redis has not said anything since
	if !by.Exact && after > time.Second || by.Until.IsZero() {
		after = time.Second
	}
	e := &BusyError{Key: c.name.Key(), RetryAfter: max(after, time.Millisecond), Done: by.Done && !over, refused: refused, over: over}
	if c.settings.Wait != nil {
		e.wait = *c.settings.Wait
	}
	return e
}
