package core

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

const (
	// maxSilence is how long a waiting call endures that Redis fails.
	maxSilence = 5 * time.Second
	// A lost wake-up costs at most pollMax.
	pollMax = time.Second
	// Without wake-ups waiting calls ask again after these, doubling: a lock that is granted
	// to one of them lies idle until then.
	pollUnnotified    = 20 * time.Millisecond
	pollUnnotifiedMax = 150 * time.Millisecond
	// In a quorum contenders may each get a part of it; they come back after a random time below these, or twice what the
	// question took, doubling until the call has the lock.
	splitDelay    = 4 * time.Millisecond
	splitDelayMax = 256 * time.Millisecond
)

// waitSafely takes a lock that the context does not hold. A call whose context holds others is refused where its wait
// might not end.
func (c *lockCall) waitSafely() (*Lock, error) {
	if !c.settings.Waits() {
		return c.tryWithoutQueue(notWaiting)
	}
	i := c.inner()
	if i == nil {
		return c.tryThenQueue()
	}
	if i.isOutOfOrder() {
		k, err := c.tryWithoutQueue(outOfOrder)
		return k, i.noteHeld(err)
	}
	if err := i.begin(); err != nil {
		return nil, err
	}
	defer i.end()
	k, err := c.tryThenQueue()
	return k, i.noteHeld(err)
}

// tryThenQueue asks Redis at once if that may be of use, and then waits in the queue.
func (c *lockCall) tryThenQueue() (*Lock, error) {
	e := c.engine
	if c.mayGoAtOnce() {
		k, err := c.askOnce()
		if _, isBusy := err.(*store.Busy); !isBusy {
			return k, err
		}
	} else if c.settings.Ticket != "" && len(e.queues.Find(c.name.Lock())) > 0 {
		// Only the head asks Redis, and cannot have the lock that was handed over to this call.
		if k, err := c.ask(c.settings.Ticket); err == nil {
			return k, nil
		}
	}
	w, by := e.queues.Join(c.name.Lock(), c.owner().Of(""), &c.want, c.settings.MaxWaiters)
	if w == nil {
		return nil, c.refuse(tooManyWaiting, by)
	}
	return c.waitInQueue(w)
}

// tryWithoutQueue refuses the call while the lock is busy, for that reason, but not by what this process is giving up:
// then it asks once more.
func (c *lockCall) tryWithoutQueue(why refusal) (*Lock, error) {
	if k := c.takeOver(); k != nil {
		return k, nil
	}
	unconfirmed := c.engine.givingUp.of(c.name.Lock()) // before Redis is asked: what is confirmed later may be in the answer
	if c.engine.store.MinorityMayKeep() {
		unconfirmed.releases = 0 // dead members of a quorum confirm nothing
	}
	for ; ; unconfirmed.releases = 0 {
		k, err := c.askOnce()
		busy, isBusy := err.(*store.Busy)
		switch {
		case !isBusy:
			return k, err
		case unconfirmed.releases == 0 || !unconfirmed.confirmed(c.ctx):
			return nil, c.refuse(why, takenOf(busy))
		}
	}
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

// askOnce asks Redis for the lock, for a call that does not wait in the queue. It returns what readAnswer does.
func (c *lockCall) askOnce() (*Lock, error) { return c.ask(c.way().Ticket) }

// ask asks Redis without an entry in the queue: for the lock that was handed over with the ticket, unless that is empty.
func (c *lockCall) ask(ticket string) (*Lock, error) {
	claim := c.claim(c.engine.store.NewHold(), store.NotWaiting)
	claim.Ticket = ticket
	granted, err := c.engine.store.Acquire(c.ctx, &claim)
	return c.readAnswer(&claim, granted, err)
}

// askAsHead is askOnce for the head of the queue of this process, by its entry in the queue of the lock, if it has one.
func (c *lockCall) askAsHead(w *waiter) (*Lock, error) {
	if k := c.takeOver(); k != nil {
		return k, nil
	}
	e := c.engine
	q := w.Entry(e.entryFor)
	if q == nil {
		return c.askOnce()
	}
	claim := c.claim(q.Hold, e.howToWait(q, c.name))
	granted, err := e.store.Acquire(c.ctx, &claim)
	e.entryAnswered(q, &claim, granted, err)
	return c.readAnswer(&claim, granted, err)
}

// readAnswer makes a lock of the answer to a claim, or the error of the call; while others have the lock that is a
// *store.Busy. A lock that was handed over to the call it takes by its ticket.
func (c *lockCall) readAnswer(claim *store.Claim, granted store.Grant, err error) (*Lock, error) {
	if err == nil {
		k, err := c.lockOfAnswer(claim, granted)
		claim.Decided((*decidedLock)(k))
		return k, err
	}
	claim.Decided((*decidedLock)(nil))
	var busy *store.Busy
	if !errors.As(err, &busy) {
		return nil, c.requestError(claim, err)
	}
	if busy.HandedOver && c.settings.Ticket != "" && claim.Ticket == "" {
		if k, err := c.ask(c.settings.Ticket); err == nil {
			return k, nil
		}
	}
	return nil, busy
}

type waiter = waitqueue.Waiter[*want, grant, *entry]

type queuedCall struct {
	*lockCall
	waiter  *waiter
	pace    time.Duration // after which it asks again while it is not notified
	backOff time.Duration // after which it asks a quorum again of which contenders have got parts
}

// waitInQueue waits until the call is the head of its queue, then for the lock. The head asks
// Redis whenever the lock may have become free.
func (c *lockCall) waitInQueue(w *waiter) (*Lock, error) {
	queued := queuedCall{lockCall: c, waiter: w, pace: pollUnnotified}
	var until time.Time // zero: it has no Wait
	if wait := c.settings.Wait; wait != nil {
		until = time.Now().Add(*wait - c.group.waited())
	}
	for {
		r := w.Wait(c.ctx, queued.pollDelay, until, c.engine.closing)
		switch r.Reason {
		case waitqueue.AskRedis:
		case waitqueue.LockGiven:
			return queued.lockGiven(r.Lock)
		case waitqueue.Refused:
			if r.Err == nil {
				return nil, c.refuse(tooManyWaiting, r.State.Taken)
			}
			return nil, r.Err
		default:
			return nil, queued.leave(c.waitError(r.Reason, r.State))
		}
		asked := time.Now()
		k, err := c.askAsHead(w)
		if err == nil {
			queued.took(k)
			return k, nil
		}
		if busy, ok := err.(*store.Busy); ok {
			queued.stillBusy(busy, asked)
		} else if err := queued.askFailed(err, asked); err != nil {
			return nil, err
		}
	}
}

// pollDelay is how long to wait for a notification before asking again.
func (c *queuedCall) pollDelay(known waitqueue.State) time.Duration {
	delay := pollMax/2 + rand.N(pollMax/2)
	silent := !known.Silence.IsZero()
	if silent || !known.Local && !c.engine.isNotified(c.name) {
		delay = c.pace/2 + rand.N(c.pace/2)
		c.pace = min(2*c.pace, pollUnnotifiedMax)
	}
	if !known.Until.IsZero() && !silent {
		// Its end is known: nobody announces that a key has expired.
		delay = min(delay, max(time.Until(known.Until), 0)+2*time.Millisecond)
	}
	return delay
}

// lockGiven takes a lock that the call was given in memory.
func (c *queuedCall) lockGiven(g grant) (*Lock, error) {
	k, err := c.lockGivenInMemory(g)
	if err != nil {
		return nil, c.leave(err)
	}
	c.took(k)
	if c.ctx.Err() != nil {
		_ = k.finish(c.ctx, store.Failed, true)
		return nil, c.gaveUp()
	}
	return k, nil
}

// stillBusy takes the answer that the lock is busy, to a question that was asked then. The call goes on waiting.
func (c *queuedCall) stillBusy(busy *store.Busy, asked time.Time) {
	e := c.engine
	if c.waiter.Busy(takenOf(busy), c.settings.MaxWaiters) {
		c.pace = pollUnnotified
		e.listener.Watch(c.name.Lock(), c.name.Channel())
	}
	if busy.Split { // contenders that block each other must not come back together
		c.backOff = min(max(2*c.backOff, splitDelay, 2*time.Since(asked)), splitDelayMax)
		e.queues.Signal(c.name.Lock(), rand.N(c.backOff))
	}
}

// askFailed takes the failure of a question that was asked then. It returns nil when the call goes on waiting, and
// otherwise the error with which it has left the queue.
func (c *queuedCall) askFailed(err error, asked time.Time) error {
	if errors.As(err, new(*store.Answered)) { // that goes for all who have waited for it since before
		c.leaveQueue(c.waiter.Dismiss(err, func(other *want, since time.Time) bool {
			return since.Before(asked) && other.settings.Attempt != nil && other.settings.Attempt.Request == c.settings.Attempt.Request
		}))
		return err
	}
	known := c.waiter.Silent(asked) // to all calls of the queue
	long := time.Since(known.Silence) >= maxSilence
	switch {
	case known.Answered && c.ctx.Err() != nil:
		err = c.waitError(waitqueue.ContextEnded, known)
	case known.Answered && errors.Is(err, ErrUnavailable) && !errors.Is(err, errLateGrant) && !conn.IsClosed(err) && !long:
		return nil
	}
	var network net.Error
	if noAnswer := errors.Is(err, conn.ErrNoAnswer) || errors.As(err, &network) || errors.Is(err, io.EOF); long && noAnswer {
		c.leaveQueue(c.waiter.Dismiss(err, func(*want, time.Time) bool { return true }))
		return err
	}
	return c.leave(err) // it may have failed for a reason of its own: the others try for themselves
}

func (c *queuedCall) took(k *Lock) {
	c.leaveQueue(c.waiter.Took(k.lease.end(), k.lease.Fixed))
	if !c.form.Alone() { // there may be room for the next one
		c.engine.queues.Signal(c.name.Lock(), 0)
	}
}

func (c *queuedCall) leave(err error) error {
	c.leaveQueue(c.waiter.Leave())
	return err
}

// leaveQueue gives up what the queue had, if the call was the last in it.
func (c *queuedCall) leaveQueue(left waitqueue.Leftover[*entry]) {
	if left.Notifications {
		c.engine.listener.Unwatch(c.name.Channel())
	}
	c.engine.giveUp(c.ctx, c.name, left.Entry)
}
