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
	store.Place
	since   schedule.Time
	resends conn.Resends

	carried  atomic.Int32                // releases that may yet enter it into the queue
	answered atomic.Pointer[store.Clock] // of Redis, when it had the position in the queue last; nil: it never had
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

// position returns that by which the head of a queue asks for the lock, nil where the call
// or the processes have no queue.
func (c *call) position(w *waiter) *position {
	if w == nil || !c.locker.store.Can.Grant {
		return nil
	}
	return w.Position((*call).renew)
}

// renew returns the position to wait by: the present one, if there is one of the form that
// the call wants. A call for an attempt has none, for it is an answer that it waits for.
func (c *call) renew(now *position) *position {
	if now != nil && now.Form == c.form && !c.isAttempt() {
		return now
	}
	c.leaveQueue(now)
	if c.isAttempt() {
		return nil
	}
	hold := c.locker.store.NewHold()
	return &position{Place: store.Place{Hold: hold, Owner: c.ownerOf(hold), Form: c.form}, since: schedule.Now()}
}

// carry is renew for a release that enters the position into the queue.
func (c *call) carry(now *position) *position {
	p := c.renew(now)
	if p != nil {
		p.carried.Add(1)
	}
	return p
}

// arrived takes the answer to such a release. Without a clock it does not tell whether it has
// entered the position.
func (p *position) arrived(clock store.Clock) {
	if clock.Redis != 0 {
		p.answered.Store(&clock)
		p.carried.Add(-1)
	}
}

// spend has the next call ask with another hold: that of the position has the lock, or is
// given up.
func spend(w *waiter) {
	w.Position(func(*call, *position) *position { return nil })
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
func (p *position) took(w *waiter, c *store.Claim, g store.Grant) {
	if p == nil {
		return
	}
	spend(w)
	if g.Ahead || !g.Outermost || c.Wait != store.Listening {
		return
	}
	if clock := p.answered.Load(); clock != nil && g.Sent.Sub(clock.NotBefore(time.Duration(g.Token)*time.Microsecond)) > lateGrant {
		w.Request.locker.missedMessage()
	}
}

// busy takes the answer that the lock is busy. Where the position was taken out of the queue
// since an earlier answer, the lock was granted to it, or nobody heard. A copy that was not
// answered was compensated, which ends the hold.
func (p *position) busy(w *waiter, b *store.Busy) {
	if p == nil {
		return
	}
	before := p.answered.Swap(&b.Clock)
	if b.New && before != nil && before.Redis < b.Clock.Redis {
		w.Request.locker.missedMessage()
	}
	if p.resends.MayArriveTwice() {
		spend(w)
	}
}

// failed takes an error of a claim. One that may have had an effect was compensated if it has
// left, which ends the hold. Of another one Redis knows nothing.
func (p *position) failed(w *waiter, err error) {
	if p == nil {
		return
	}
	if o := conn.OutcomeOf(err); o != conn.NotSent && o != conn.Refused || p.resends.MayArriveTwice() {
		spend(w)
		w.Request.leaveQueue(p)
	}
}

// leaveQueue gives up a position, and the lock if it was granted to it. A release that is
// under way must not enter it later.
func (c *call) leaveQueue(p *position) {
	if p == nil {
		return
	}
	if carried := p.carried.Load() > 0; carried || p.answered.Load() != nil {
		c.locker.store.ReleaseLater(store.Release{
			Name: c.name, Owner: p.Owner, Hold: p.Hold, Form: p.Form, Failed: true, MayArrive: carried, Until: time.Now().Add(leftAfter),
		})
	}
}
