package core

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// waiter is a call in the wait queue of its lock.
type waiter = waitqueue.Waiter[*want, grant, *entry]

// entry is that of a wait queue of this process in the queue of the lock, in Redis: a
// hold with which all its calls ask, one after another, and to which a release can grant
// the lock.
type entry struct {
	store.Place
	since   schedule.Time
	resends conn.Resends

	mu       sync.Mutex
	state    entryState
	carriers int         // releases under way that may put it into the queue
	clock    store.Clock // of Redis, when it was in the queue last; zero: it never was
}

// entryState is what is known of an entry.
type entryState int

const (
	fresh  entryState = iota // Redis has not said that it is in the queue
	queued                   // it is in the queue, or was granted the lock meanwhile
	spent                    // it has the lock, or was given up: the next call asks by another one
)

const (
	// A process that has missed a message polls for so long.
	deafFor = 5 * time.Second
	// Who has not subscribed after so long polls until it has.
	subscribeIn = 250 * time.Millisecond
	// An entry that could not be given up is out of the queue, and has lost the lock.
	leftAfter = 10 * time.Second
	// lateGrant is how late a grant may be noticed. Where Redis is far away each is noticed
	// late by a round trip, as far as is known.
	lateGrant = store.GrantLease / 4
)

// entryFor returns the entry to wait by: the present one, if that has the form that the call
// wants. A call for an attempt has none, for it is an answer that it waits for.
func (e *engine) entryFor(w *want, now *entry) *entry {
	if now != nil && now.serves(w) {
		return now
	}
	e.giveUp(w.name, now)
	if w.isAttempt() {
		return nil
	}
	hold := e.store.NewHold()
	return &entry{Place: store.Place{Hold: hold, Owner: w.ownerOf(hold), Form: w.form}, since: schedule.Now()}
}

func (q *entry) serves(w *want) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state != spent && q.Form == w.form && !w.isAttempt()
}

// waiting says how an entry waits if the lock is busy.
func (e *engine) waiting(q *entry, n store.Name) store.Waiting {
	now := schedule.Now()
	if e.isDeaf(now) || now.Sub(q.since) > subscribeIn && !e.listener.Hears(n.Channel()) {
		return store.Polling
	}
	return store.Listening
}

// spend ends the use of an entry.
func (q *entry) spend() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state = spent
}

// lastQueued is what the clock of Redis showed when the entry was in the queue last. asks is false
// when no call asks by it any more.
func (q *entry) lastQueued() (clock store.Clock, asks bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.clock, q.state != spent
}

// answered takes the answer to a claim by the entry.
func (e *engine) answered(q *entry, c *store.Claim, g store.Grant, err error) {
	var busy *store.Busy
	switch {
	case err == nil:
		e.noteGrant(q, c, g)
	case errors.As(err, &busy):
		if q.noteBusy(busy.Clock, busy.New) {
			e.missedMessage()
		}
	case conn.OutcomeOf(err) != conn.NotSent && conn.OutcomeOf(err) != conn.Refused, q.resends.MayArriveTwice():
		// It may have had an effect, and was compensated if it was sent, which ends the hold.
		e.giveUp(c.Name, q)
	}
}

// noteGrant spends an entry that has got the lock. Where Redis had granted it long before, a message
// was missed.
func (e *engine) noteGrant(q *entry, c *store.Claim, g store.Grant) {
	clock, _ := q.lastQueued()
	q.spend()
	if clock.Redis == 0 || g.Ahead || !g.Outermost || c.Wait != store.Listening {
		return
	}
	if g.Sent.Sub(clock.NotBefore(time.Duration(g.Token)*time.Microsecond)) > lateGrant {
		e.missedMessage()
	}
}

// noteBusy takes the answer that the lock is busy. missed says that the entry, which is new to the queue, was
// in it before: the lock was granted to it, or nobody heard. A copy that was not
// answered was compensated, which ends the hold.
func (q *entry) noteBusy(clock store.Clock, isNew bool) (missed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.clock.Redis
	q.state, q.clock = queued, clock
	if q.resends.MayArriveTwice() {
		q.state = spent
	}
	return isNew && before != 0 && before < clock.Redis
}

// carriedBy returns the entry that a release puts into the queue, for calls of this process that go on waiting for
// the lock; nil when none do, or no message would reach them.
func (e *engine) carriedBy(n store.Name) *entry {
	if !e.hears(n) {
		return nil
	}
	return e.queues.Waits(n.Lock(), e.carry)
}

// carry is entryFor for a release.
func (e *engine) carry(w *want, now *entry) *entry {
	q := e.entryFor(w, now)
	if q != nil {
		q.mu.Lock()
		q.carriers++
		q.mu.Unlock()
	}
	return q
}

// carried takes the answer to such a release. Without a clock it does not say whether the
// entry is in the queue.
func (q *entry) carried(clock store.Clock) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if clock.Redis == 0 {
		return
	}
	q.carriers--
	q.clock = clock
	if q.state == fresh {
		q.state = queued
	}
}

// giveUp ends the use of an entry, if there is one, and gives up the lock if that was granted to it. A release that
// is under way must not put it into the queue later.
func (e *engine) giveUp(n store.Name, q *entry) {
	if q == nil {
		return
	}
	q.mu.Lock()
	carried := q.carriers > 0
	left := q.state == queued || q.state == fresh && carried
	q.state = spent
	q.mu.Unlock()
	if left {
		e.store.ReleaseLater(store.Release{
			Name: n, Owner: q.Owner, Hold: q.Hold, Form: q.Form, Failed: true, MayArrive: carried, Until: time.Now().Add(leftAfter),
		})
	}
}

// hears says that messages reach this process when a lock is granted to it.
func (e *engine) hears(n store.Name) bool {
	return e.store.Can.Grant && e.listener.Listens() && !e.isDeaf(schedule.Now()) && e.listener.Hears(n.Channel())
}

// isDeaf says that this process has missed a message not long ago.
func (e *engine) isDeaf(now schedule.Time) bool { return now < schedule.Time(e.deafUntil.Load()) }

func (e *engine) missedMessage() {
	e.deafUntil.Store(int64(schedule.Now().Add(deafFor)))
	e.notify(context.Background(), Event{Kind: EventGrantMissed})
}
