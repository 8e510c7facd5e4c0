package core

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// entry is that of a wait queue of this process in the queue of the lock, in Redis: a hold with which all its calls ask, one
// after another, and to which a release can grant the lock.
type entry struct {
	store.Place
	since schedule.Time

	mu       sync.Mutex
	spent    bool        // it has the lock, or was given up: the next call asks by another one
	releases int32       // under way, which may enqueue it
	clock    store.Clock // of Redis, when it was in the queue last, unless the lock was granted to it since; zero: it never was
}

const (
	// A process that has missed a message polls for so long.
	pollAfterMiss = 5 * time.Second
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
	hasEntry := w.settings.Attempt == nil && e.store.HasQueue()
	if hasEntry && now != nil && now.Form == w.form {
		if _, isInUse := now.lastQueued(); isInUse {
			return now
		}
	}
	e.giveUp(w.ctx, w.name, now)
	if !hasEntry {
		return nil
	}
	hold := e.store.NewHold()
	return &entry{Place: store.Place{Hold: hold, Owner: w.owner().Of(hold), Form: w.form}, since: schedule.Now()}
}

func (e *engine) howToWait(q *entry, name store.Name) store.Waiting {
	if e.mustPoll() || schedule.Now().Sub(q.since) > subscribeIn && !e.isNotified(name) {
		return store.Polling
	}
	return store.Listening
}

// spend ends the use of an entry. It is false when that has ended before: two calls must not get one hold.
func (q *entry) spend() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.spent
	q.spent = true
	return !was
}

// lastQueued is what the clock of Redis showed when the entry was in the queue last. isInUse is false
// when no call asks by it any more.
func (q *entry) lastQueued() (clock store.Clock, isInUse bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.clock, !q.spent
}

// entryAnswered takes the answer to a claim by the entry. A copy that was not answered was compensated, as was a
// claim that may have had an effect: that ends the hold.
func (e *engine) entryAnswered(q *entry, c *store.Claim, g store.Grant, err error) {
	busy, isBusy := err.(*store.Busy)
	copied, missed := c.Resends.MayArriveTwice(), false
	q.mu.Lock()
	wasQueued := q.clock.Redis != 0
	switch {
	case isBusy: // an entry that is new to the queue, and was in it before, was granted the lock, and nobody heard
		missed = busy.New && wasQueued && q.clock.Redis < busy.Clock.Redis
		q.spent, q.clock = copied, busy.Clock
	case err == nil: // Redis may have granted the lock long before
		granted := q.clock.NotBefore(time.Duration(g.Token) * time.Microsecond)
		missed = wasQueued && !g.Ahead && g.Outermost && c.Wait == store.Listening && g.Sent.Sub(granted) > lateGrant
		q.spent = true
	}
	q.mu.Unlock()
	switch {
	case missed:
		e.missedMessage()
	case err != nil && !isBusy && (copied || conn.OutcomeOf(err) == conn.Unknown):
		e.giveUp(c.Context, c.Name, q)
	}
}

// entryToEnqueue returns the entry that a release of the lock enqueues, for calls of this process that go on waiting
// for it. It is nil when none do, or no message would reach them.
func (e *engine) entryToEnqueue(name store.Name) *entry {
	// A call with an owner of its own choice may enter the lock meanwhile, and leave it: then the release would enqueue an
	// entry that was used up.
	mayBeEnqueued := func(w *want) bool { return w.chosen == "" && e.isNotified(name) }
	return e.queues.EntryOf(name.Lock(), mayBeEnqueued, func(w *want, now *entry) *entry {
		q := e.entryFor(w, now)
		if q != nil {
			q.mu.Lock()
			q.releases++
			q.mu.Unlock()
		}
		return q
	})
}

// releaseAnswered takes the answer to such a release. Without a clock it does not say whether the entry is in the queue.
func (q *entry) releaseAnswered(clock store.Clock) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if clock.Redis == 0 {
		return
	}
	q.releases--
	q.clock = clock
}

// giveUp ends the use of an entry, if there is one, and gives up the lock if that was granted to it. A release that
// is under way must not put it into the queue later.
func (e *engine) giveUp(ctx context.Context, name store.Name, q *entry) {
	if q == nil {
		return
	}
	q.mu.Lock()
	mayArrive := q.releases > 0
	left := !q.spent && (mayArrive || q.clock.Redis != 0)
	q.spent = true
	q.mu.Unlock()
	if left {
		e.store.ReleaseLater(store.Release{
			Holding: store.Holding{Name: name, Owner: q.Owner, Hold: q.Hold}, Terms: store.Terms{Form: q.Form},
			Work: store.Failed, MayArrive: mayArrive, Until: time.Now().Add(leftAfter), Context: ctx,
		})
	}
}

// isNotified says that messages reach this process when a lock is granted to it.
func (e *engine) isNotified(name store.Name) bool {
	return !e.mustPoll() && e.listener.Subscribed(name.Channel())
}

// mustPoll says that this process has missed a message not long ago.
func (e *engine) mustPoll() bool { return schedule.Now() < schedule.Time(e.pollsUntil.Load()) }

func (e *engine) missedMessage() {
	e.pollsUntil.Store(int64(schedule.Now().Add(pollAfterMiss)))
	e.notify(context.Background(), Event{Kind: EventGrantMissed})
}
