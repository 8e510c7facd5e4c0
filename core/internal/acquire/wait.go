package acquire

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

const (
	// maxSilence is how long a waiting call endures that Redis fails.
	maxSilence = 5 * time.Second
	// The check of a head comes within it: so much a lost wake-up costs at most.
	checkEvery = time.Second
	// Without wake-ups waiting calls ask again after these, doubling: a lock that is granted
	// to one of them lies idle until then.
	pollUnnotified    = 20 * time.Millisecond
	pollUnnotifiedMax = 150 * time.Millisecond
	// In a quorum contenders may each get a part of it; they come back after a random time below these, or twice what the
	// question took, doubling until the call has the lock.
	splitDelay    = 4 * time.Millisecond
	splitDelayMax = 256 * time.Millisecond
)

// waitCheckingDeadlock takes a lock that the context does not hold. A call whose context holds others is refused where its wait
// might not end.
func (c *call) waitCheckingDeadlock() (*lease.Handle, error) {
	if !c.settings.Waits() {
		return c.askWithoutQueue(notWaiting)
	}
	n := c.asNestedWait()
	if n == nil {
		return c.askThenQueue()
	}
	if n.isOutOfOrder() {
		return c.askWithoutQueue(OutOfOrder)
	}
	if err := n.begin(); err != nil {
		return nil, err
	}
	defer n.end()
	return c.askThenQueue()
}

// askThenQueue asks Redis at once if that may be of use, and then waits in the queue.
func (c *call) askThenQueue() (*lease.Handle, error) {
	a := c.acquirer
	if c.canBypassQueue() {
		h, err := c.askOnce()
		if _, isBusy := err.(*store.Busy); !isBusy {
			return h, err
		}
	} else if c.settings.Ticket != "" && len(a.queues.Find(c.name.Lock())) > 0 {
		// Only the head asks Redis, and cannot have the lock that was handed over to this call.
		if h, err := c.ask(c.settings.Ticket); err == nil {
			return h, nil
		}
	}
	w, by := a.queues.Join(c.name.Lock(), c.owner().Of(""), &c.spec, c.settings.MaxWaiters)
	if w == nil {
		return nil, c.refuse(TooManyWaiting, by)
	}
	return c.waitInQueue(w)
}

// askWithoutQueue refuses the call while the lock is busy, for that reason, but not by what this process is giving up:
// then it asks once more.
func (c *call) askWithoutQueue(why Reason) (*lease.Handle, error) {
	if h := c.reclaimUnsent(); h != nil {
		return h, nil
	}
	pending := c.acquirer.pending.of(c.name.Lock())                  // before Redis is asked: what is confirmed later may be in the answer
	mayAwait := pending.releases > 0 && !c.acquirer.Store.IsQuorum() // dead members of a quorum confirm nothing
	for ; ; mayAwait = false {
		h, err := c.askOnce()
		busy, isBusy := err.(*store.Busy)
		switch {
		case !isBusy:
			return h, err
		case !mayAwait || !pending.await(c.ctx):
			return nil, c.refuse(why, takenOf(busy))
		}
	}
}

// canBypassQueue says that the call need not queue, perhaps: a chosen owner may hold the lock already,
// and there may be room beside others that share it or have permits.
func (c *call) canBypassQueue() bool {
	switch {
	case !c.owner().IsSimple():
		return true
	case c.form.Alone():
		return false
	}
	_, waits := c.acquirer.queues.Oldest(c.name.Lock())
	return !waits
}

type queuedCall struct {
	*call
	waiter  *waiter
	pace    time.Duration // after which it asks again while it is not notified
	backOff time.Duration // after which it asks a quorum again of which contenders have got parts
}

// waitInQueue waits until the call is the head of its queue, then for the lock. The head asks
// Redis whenever the lock may have become free.
func (c *call) waitInQueue(w *waiter) (*lease.Handle, error) {
	queued := queuedCall{call: c, waiter: w, pace: pollUnnotified}
	var until time.Time // zero: it has no Wait
	if wait := c.settings.Wait; wait != nil {
		until = time.Now().Add(*wait - c.group.Waited())
	}
	for {
		r := w.Wait(c.ctx, queued.pollDelay, until, c.acquirer.Closing())
		switch r.News {
		case waitqueue.AskRedis:
		case waitqueue.LockGiven:
			if h, err := queued.takeGiven(r.Lock); h != nil || err != nil {
				return h, err
			}
			w.Decline()
		case waitqueue.TooMany:
			return nil, c.refuse(TooManyWaiting, r.Known.Taken)
		case waitqueue.Dismissed:
			if busy, inWindow := r.Err.(*store.Busy); inWindow {
				return nil, c.refuse(notWaiting, takenOf(busy))
			}
			return nil, r.Err
		default:
			return nil, queued.leaveWith(c.waitError(r.News, r.Known))
		}
		asked := time.Now()
		h, err := c.askAsHead(w)
		if err == nil {
			queued.leaveWithLock(h)
			return h, nil
		}
		if busy, ok := err.(*store.Busy); ok && busy.Why == store.InDedupWindow && c.settings.RefusesInWindow {
			queued.leaveQueue(w.Dismiss(busy, func(other *spec, _ time.Time) bool { return other.settings.RefusesInWindow }))
			return nil, c.refuse(notWaiting, takenOf(busy))
		} else if ok {
			if err := queued.stillBusy(busy, asked); err != nil {
				return nil, err
			}
		} else if err := queued.askFailed(err, asked); err != nil {
			return nil, err
		}
	}
}

// pollDelay is how long to wait for a notification before asking again.
func (c *queuedCall) pollDelay(known waitqueue.Known) time.Duration {
	delay := checkEvery/2 + rand.N(checkEvery/2)
	silent := !known.Silence.IsZero()
	if silent || known.By == waitqueue.Foreigner || !known.Local && !c.acquirer.isNotified(c.name) {
		delay = c.pace/2 + rand.N(c.pace/2)
		c.pace = min(2*c.pace, pollUnnotifiedMax)
	}
	if !known.Until.IsZero() && !silent {
		// Its end is known: nobody announces that a key has expired.
		delay = min(delay, max(time.Until(known.Until), 0)+2*time.Millisecond)
	}
	return delay
}

// takeGiven takes a lock that the call was given in memory. It returns nil, without an error, when that was too late, for this process has
// stood still, and the lease is over: then the call goes on waiting.
func (c *queuedCall) takeGiven(g lease.AcquiredLock) (*lease.Handle, error) {
	h, err := c.acquiredInMemory(g)
	switch {
	case err != nil && c.acquirer.IsClosing():
		return nil, c.leaveWith(err)
	case err != nil:
		return nil, nil
	}
	c.leaveWithLock(h)
	if c.ctx.Err() != nil {
		_ = h.Release(c.ctx, store.Failed, option.BackgroundRelease)
		return nil, c.gaveUp()
	}
	return h, nil
}

// stillBusy takes the answer that the lock is busy, to a question that was asked then. It returns nil when the call goes on waiting, and
// otherwise the error with which it has left the queue.
func (c *queuedCall) stillBusy(busy *store.Busy, asked time.Time) error {
	a := c.acquirer
	watch, isOneTooMany := c.waiter.Busy(takenOf(busy), c.settings.MaxWaiters)
	if isOneTooMany {
		return c.leaveWith(c.refuse(TooManyWaiting, takenOf(busy)))
	}
	if watch {
		c.pace = pollUnnotified
		a.listener.Watch(c.name.Lock(), c.name.Channel())
	}
	if busy.Split { // contenders that block each other must not come back together
		c.backOff = min(max(2*c.backOff, splitDelay, 2*time.Since(asked)), splitDelayMax)
		a.queues.Signal(c.name.Lock(), rand.N(c.backOff))
	}
	return nil
}

// askFailed takes the failure of a question that was asked then. It returns nil when the call goes on waiting, and
// otherwise the error with which it has left the queue.
func (c *queuedCall) askFailed(err error, asked time.Time) error {
	if errors.As(err, new(*store.Answered)) { // that goes for all who have waited for it since before
		c.leaveQueue(c.waiter.Dismiss(err, func(other *spec, since time.Time) bool {
			return since.Before(asked) && other.settings.Attempt != nil && other.settings.Attempt.Request == c.settings.Attempt.Request
		}))
		return err
	}
	var failed FailedRun
	if errors.As(err, &failed) {
		c.leaveQueue(c.waiter.Dismiss(err, func(other *spec, since time.Time) bool {
			return since.Before(failed.at) && other.takesFailures()
		}))
		return err
	}
	var why error
	if failure := (*conn.Failure)(nil); c.ctx.Err() == nil && errors.As(err, &failure) { // not the end of this call
		why = failure
	}
	known := c.waiter.Silent(asked, why) // to all calls of the queue
	long := time.Since(known.Silence) >= maxSilence
	switch {
	case known.Answered && c.ctx.Err() != nil:
		err = c.waitError(waitqueue.ContextEnded, known)
	case known.Answered && errors.As(err, new(*conn.Failure)) && !conn.IsClosed(err) && !long:
		return nil
	}
	var network net.Error
	if noAnswer := errors.Is(err, conn.ErrNoAnswer) || errors.As(err, &network) || errors.Is(err, io.EOF); long && noAnswer {
		c.leaveQueue(c.waiter.Dismiss(err, func(*spec, time.Time) bool { return true }))
		return err
	}
	return c.leaveWith(err) // it may have failed for a reason of its own: the others try for themselves
}

func (c *queuedCall) leaveWithLock(h *lease.Handle) {
	taken := waitqueue.Taken{Until: h.Ends()}
	if h.Acquired().Fixed {
		taken.By = waitqueue.FixedHolder
	}
	c.leaveQueue(c.waiter.Took(taken))
	if !c.form.Alone() { // there may be room for the next one
		c.acquirer.queues.Signal(c.name.Lock(), 0)
	}
}

func (c *queuedCall) leaveWith(err error) error {
	c.leaveQueue(c.waiter.Leave())
	return err
}

// leaveQueue gives up what the queue had, if the call was the last in it.
func (c *queuedCall) leaveQueue(left waitqueue.Leftover[*entry]) {
	if left.Watched {
		c.acquirer.listener.Unwatch(c.name.Channel())
	}
	c.acquirer.giveUpEntry(c.ctx, c.name, left.Entry)
}
