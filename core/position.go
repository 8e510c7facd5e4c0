package core

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// position is by what a wait queue of this process waits in that of the lock, in Redis: a
// hold with which all its calls ask, one after another, and to which a release can grant
// the lock.
type position struct {
	hold    string
	owner   string // the hold, unless the callers have chosen one
	since   schedule.Time
	resends conn.Resends

	queued   atomic.Bool                 // Redis may have it in the queue
	spent    atomic.Bool                 // its hold must not be used any more: it is given up
	carried  atomic.Int32                // releases under way that enter it into the queue
	answered atomic.Pointer[store.Clock] // of Redis, when it answered last
}

const (
	// A process that has missed a message polls for so long.
	deafFor = 5 * time.Second
	// Who has not subscribed after so long polls until it has.
	subscribeIn = 250 * time.Millisecond
	// A position that could not be given up is out of the queue, and has lost the lock.
	leftAfter = 10 * time.Second
	// lateGrant is how late a grant may be noticed. Where Redis is far away each is noticed
	// late by a round trip, as far as is known.
	lateGrant = store.GrantLease / 4
)

// position returns that by which the head of a queue asks for the lock, nil where the
// processes have no queue.
func (c *call) position(w *waiter) *position {
	if !c.locker.store.Can.Grant {
		return nil
	}
	return w.Position((*call).renew)
}

// renew returns the position to wait by: the present one, if it will do.
func (c *call) renew(now *position) *position {
	if now != nil && !now.spent.Load() {
		return now
	}
	hold := c.locker.store.NewHold()
	return &position{hold: hold, owner: c.ownerOf(hold), since: schedule.Now()}
}

// waiting says how a position waits if the lock is busy.
func (l *Locker) waiting(p *position, n store.Name) store.Waiting {
	now := schedule.Now()
	if l.isDeaf(now) || now.Sub(p.since) > subscribeIn && !l.listener.Hears(n.Channel()) {
		return store.Polling
	}
	return store.Listening
}

// isDeaf says that this process has missed a message not long ago.
func (l *Locker) isDeaf(now schedule.Time) bool { return now < schedule.Time(l.deafUntil.Load()) }

func (l *Locker) missedMessage() {
	l.deafUntil.Store(int64(schedule.Now().Add(deafFor)))
	l.tell(context.Background(), Event{Kind: EventGrantMissed})
}

// took takes the answer to a claim that has got the lock. Where Redis had granted it
// long before, a message was missed.
func (p *position) took(l *Locker, c *store.Claim, g store.Grant) {
	if p == nil || g.Ahead || !g.Outermost || c.Wait != store.Listening {
		return
	}
	if clock := p.answered.Load(); clock != nil && g.Sent.Sub(clock.NotBefore(time.Duration(g.Token)*time.Microsecond)) > lateGrant {
		l.missedMessage()
	}
}

// busy takes the answer that the lock is busy. was says that the position was in the queue:
// where it was taken out meanwhile, the lock was granted to it, or nobody heard. A copy that
// was not answered was compensated, which ends the hold.
func (p *position) busy(c *call, was bool, b *store.Busy) {
	if p == nil {
		return
	}
	p.heard(b.Clock)
	if was && b.New && p.carried.Load() == 0 {
		c.locker.missedMessage()
	}
	if p.resends.MayArriveTwice() {
		p.spend(c, was)
	}
}

// failed takes an error of a claim. One that may have had an effect was compensated,
// which ends the hold; after another Redis knows of the position what it knew before.
func (p *position) failed(c *call, was bool, err error) {
	if p == nil {
		return
	}
	if o := conn.OutcomeOf(err); o != conn.NotSent && o != conn.Refused || p.resends.MayArriveTwice() {
		p.spend(c, was)
		return
	}
	p.queued.Store(was)
	if p.carried.Load() > 0 { // since
		p.queued.Store(true)
	}
}

// spend has the next call ask with another hold. The last claim was compensated if it has
// left. If it has not, the position may have been in the queue before.
func (p *position) spend(c *call, was bool) {
	if p != nil && !p.spent.Swap(true) && was {
		c.locker.giveUp(c.name, p, true)
	}
}

// heard takes the clock of Redis from an answer about the lock.
func (p *position) heard(c store.Clock) {
	if p != nil && c.Redis != 0 {
		p.answered.Store(&c)
	}
}

// leaveQueue gives up a position, and the lock if it was granted to it. A release that is
// under way must not enter it later.
func (l *Locker) leaveQueue(n store.Name, p *position) {
	if p != nil && p.queued.Load() && !p.spent.Load() {
		l.giveUp(n, p, p.resends.MayArriveTwice() || p.carried.Load() > 0)
	}
}

// giveUp ends the hold of a position; late says that a copy of a command that has it may yet
// arrive.
func (l *Locker) giveUp(n store.Name, p *position, late bool) {
	l.store.ReleaseLater(store.Release{
		Name: n, Owner: p.owner, Hold: p.hold, Failed: true, MayArrive: late, Until: time.Now().Add(leftAfter),
	})
}
