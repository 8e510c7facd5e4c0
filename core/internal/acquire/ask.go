package acquire

import (
	"errors"

	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// askOnce asks Redis for the lock, for a call that does not wait in the queue. It returns what readAnswer does.
func (c *call) askOnce() (*lease.Handle, error) { return c.ask(c.way().Ticket) }

// ask asks Redis without an entry in the queue: for the lock that was handed over with the ticket, unless that is empty.
func (c *call) ask(ticket string) (*lease.Handle, error) {
	claim := c.claim(c.acquirer.Store.NewHold(), store.NotWaiting)
	claim.Ticket = ticket
	granted, err := c.acquirer.Store.Acquire(c.ctx, &claim)
	return c.readAnswer(&claim, granted, err)
}

// askAsHead is askOnce for the head of the queue of this process, by its entry in the queue of the lock, if it has one.
func (c *call) askAsHead(w *waiter) (*lease.Handle, error) {
	if at, err := w.Failure(); err != nil && c.takesFailures() {
		return nil, FailedRun{err, at}
	}
	if h := c.reclaimUnsent(); h != nil {
		return h, nil
	}
	a := c.acquirer
	e := w.Entry(a.entryFor)
	if e == nil {
		return c.askOnce()
	}
	claim := c.claim(e.Hold, a.howToWait(e, c.name))
	granted, err := a.Store.Acquire(c.ctx, &claim)
	a.entryAnswered(e, &claim, granted, err)
	return c.readAnswer(&claim, granted, err)
}

// readAnswer makes a lock of the answer to a claim, or the error of the call; while others have the lock that is a
// *store.Busy. A lock that was handed over to the call it takes by its ticket.
func (c *call) readAnswer(claim *store.Claim, granted store.Acquired, err error) (*lease.Handle, error) {
	if err == nil {
		h, err := c.acquiredByAnswer(claim, granted)
		if err == nil {
			claim.Decided(h)
		} else {
			claim.Decided(nil)
		}
		return h, err
	}
	claim.Decided(nil)
	var busy *store.Busy
	if !errors.As(err, &busy) {
		return nil, c.claimError(claim, err)
	}
	if busy.Why == store.HandedOver && c.settings.Ticket != "" && claim.Ticket == "" {
		if h, err := c.ask(c.settings.Ticket); err == nil {
			return h, nil
		}
	}
	return nil, busy
}
