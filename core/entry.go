package core

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
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
	since schedule.Time

	mu       sync.Mutex
	state    entryState
	carriers int32       // releases under way that may put it into the queue
	clock    store.Clock // of Redis, when it was in the queue last; zero: it never was
}

// entryState is what is known of an entry.
type entryState int32

const (
	fresh   entryState = iota // Redis has not said that it is in the queue
	inQueue                   // it is in the queue, or was granted the lock meanwhile
	spent                     // it has the lock, or was given up: the next call asks by another one
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
// wants. A call for an attempt has none, for it is an answer that it waits for, and nobody where there is no queue.
func (e *engine) entryFor(w *want, now *entry) *entry {
	if now != nil && now.serves(w) {
		return now
	}
	e.giveUp(w.name, now)
	if w.isAttempt() || !e.store.HasQueue() {
		return nil
	}
	hold := e.store.NewHold()
	return &entry{Place: store.Place{Hold: hold, Owner: w.owner().Of(hold), Form: w.form}, since: schedule.Now()}
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

// answered takes the answer to a claim by the entry. A copy that was not answered was compensated, as was a
// claim that may have had an effect: that ends the hold.
func (e *engine) answered(q *entry, c *store.Claim, g store.Grant, err error) {
	missed, copied := false, c.Resends.MayArriveTwice()
	if busy, isBusy := err.(*store.Busy); isBusy {
		missed = q.queued(busy, copied)
	} else if err == nil {
		missed = q.granted(c, g)
	} else if copied || conn.OutcomeOf(err) == conn.Unknown {
		e.giveUp(c.Name, q)
	}
	if missed {
		e.missedMessage()
	}
}

// granted spends an entry that has the lock. missed says that Redis had granted it long before.
func (q *entry) granted(c *store.Claim, g store.Grant) (missed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state = spent
	return q.clock.Redis != 0 && !g.Ahead && g.Outermost && c.Wait == store.Listening &&
		g.Sent.Sub(q.clock.NotBefore(time.Duration(g.Token)*time.Microsecond)) > lateGrant
}

// queued notes that the lock is busy. missed says that the entry, which is new to the queue, was in it before: the
// lock was granted to it, or nobody heard.
func (q *entry) queued(b *store.Busy, copied bool) (missed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	missed = b.New && q.clock.Redis != 0 && q.clock.Redis < b.Clock.Redis
	q.state, q.clock = inQueue, b.Clock
	if copied {
		q.state = spent
	}
	return missed
}

// carriedBy returns the entry that a release puts into the queue, for calls of this process that go on waiting for
// the lock; nil when none do, or no message would reach them.
func (e *engine) carriedBy(n store.Name) *entry {
	if !e.hears(n) {
		return nil
	}
	return e.queues.EntryOf(n.Lock(), mayBeCarried, e.carry)
}

// mayBeCarried: a call with an owner of its own choice may enter the lock meanwhile, and leave it. Then the release
// would put in an entry that was used up.
func mayBeCarried(w *want) bool { return w.chosen == "" }

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
		q.state = inQueue
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
	left := q.state == inQueue || q.state == fresh && carried
	q.state = spent
	q.mu.Unlock()
	if left {
		e.store.ReleaseLater(store.Release{
			Holding: store.Holding{Name: n, Owner: q.Owner, Hold: q.Hold}, Terms: store.Terms{Form: q.Form},
			Work: store.Failed, MayArrive: carried, Until: time.Now().Add(leftAfter),
		})
	}
}

// hears says that messages reach this process when a lock is granted to it.
func (e *engine) hears(n store.Name) bool {
	return e.listener.Listens() && !e.isDeaf(schedule.Now()) && e.listener.Hears(n.Channel())
}

// isDeaf says that this process has missed a message not long ago.
func (e *engine) isDeaf(now schedule.Time) bool { return now < schedule.Time(e.deafUntil.Load()) }

func (e *engine) missedMessage() {
	e.deafUntil.Store(int64(schedule.Now().Add(deafFor)))
	e.notify(context.Background(), Event{Kind: EventGrantMissed})
}

// A release grants the lock to the entry that waits first, and the message about it
// has what the process needs to start at once. The lock then lasts for
// [store.GrantLease] only, so that it is not lost for long on a process that is dead or
// hangs; the holder renews it to its own lease.

// clockDrift is more than the clocks of Redis and of this machine part within a second.
const clockDrift = 2 * time.Millisecond

// message takes what a release tells this process of a lock. One that it has granted goes to the call that waits by
// that entry. If that is too late to be sure, or the call is just asking, it asks, with the same hold. A
// hold with which nobody waits is none of ours, or is being released.
func (e *engine) message(lock, text string) {
	m, err := store.ReadMessage(text)
	if err != nil { // none of ours
		return
	}
	if m.Token == 0 {
		e.queues.Signal(lock, store.Open)
		return
	}
	now := schedule.Now()
	var ends schedule.Time
	var to *entry
	w := e.queues.Choose(lock, func(w *want, q *entry) bool {
		if q == nil || !m.IsFor(q.Hold) {
			return false
		}
		clock, asks := q.lastQueued()
		if !asks {
			return false
		}
		ends, to = grantEnds(m, clock, now), q
		// Who wants something else than the usual lock asks Redis for it.
		return e.mayHandOff(w, q.Form) && w.settings.Lease >= store.GrantLease &&
			ends.Sub(now) >= store.GrantLease/2
	})
	if ends != 0 && now.Sub(ends) > lateGrant-store.GrantLease {
		e.missedMessage()
	}
	switch {
	case w != nil:
		to.spend()
		w.HandOff(grant{
			acquisition: acquisition{Terms: w.Request.terms(), owner: to.Hold, redisToken: m.Token, ahead: m.Ahead},
			Times:       life.Times{Ends: ends.Add(-e.store.Margin(store.GrantLease)), RenewAt: now.Add(renewGrantAfter), Granted: true},
			token:       m.Token, hold: to.Hold,
		})
	case to != nil:
		e.queues.Signal(lock, 0)
	}
}

// grantEnds is a time at which Redis has not ended a granted lock yet, 0 when none is known.
// The message may have been on its way for long. Its age follows from the clock of Redis, as
// Redis last showed it. A message that seems to come from the future shows that this clock was
// set since: then nothing is known.
func grantEnds(m store.Message, clock store.Clock, arrived schedule.Time) schedule.Time {
	if clock.Redis == 0 {
		return 0
	}
	at := schedule.At(clock.NotBefore(m.At))
	if at.Sub(arrived) > clockDrift {
		return 0
	}
	return min(at, arrived).Add(store.GrantLease)
}
