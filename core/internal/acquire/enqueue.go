package acquire

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// entryFor returns the entry to wait by: the present one, if that has the form that the call
// wants. A call for an attempt has none, for it is an answer that it waits for, and nobody where there is no queue.
func (a *Acquirer) entryFor(w *spec, now *entry) *entry {
	hasEntry := w.settings.Attempt == nil && !a.Store.IsQuorum()
	if hasEntry && now != nil && now.Form == w.form {
		if _, isInUse := now.lastQueued(); isInUse {
			return now
		}
	}
	a.giveUpEntry(w.ctx, w.name, now)
	if !hasEntry {
		return nil
	}
	hold := a.Store.NewHold()
	return &entry{Entry: store.Entry{Hold: hold, Owner: w.owner().Of(hold), Form: w.form}, since: schedule.Now()}
}

func (a *Acquirer) howToWait(e *entry, name store.Name) store.WaitMode {
	if a.mustPoll() || schedule.Now().Sub(e.since) > subscribeIn && !a.isNotified(name) {
		return store.Polling
	}
	return store.Listening
}

// entryAnswered takes the answer to a claim by the entry. A copy that was not answered was compensated, as was a
// claim that may have had an effect: that ends the hold.
func (a *Acquirer) entryAnswered(e *entry, c *store.Claim, g store.Acquired, err error) {
	busy, isBusy := err.(*store.Busy)
	copied := c.Resends.MayArriveTwice()
	switch {
	case isBusy && e.answeredBusy(busy, copied):
		a.grantMissed()
	case isBusy:
	case err == nil && e.answeredAcquired(g) > lateGrant && c.Wait == store.Listening:
		a.grantMissed()
	case err != nil && (copied || conn.OutcomeOf(err) == conn.Unknown):
		a.giveUpEntry(c.Context, c.Name, e)
	}
}

// entryToEnqueue returns the entry that a release of the lock enqueues, for calls of this process that go on waiting
// for it. It is nil when none do, or no message would reach them.
func (a *Acquirer) entryToEnqueue(name store.Name) *entry {
	// A call with an owner of its own choice may enter the lock meanwhile, and leave it: then the release would enqueue an
	// entry that was used up.
	mayBeEnqueued := func(w *spec) bool { return w.chosen == "" && a.isNotified(name) }
	return a.queues.EntryOf(name.Lock(), mayBeEnqueued, func(w *spec, now *entry) *entry {
		e := a.entryFor(w, now)
		if e != nil {
			e.releaseBegins()
		}
		return e
	})
}

// giveUpEntry ends the use of an entry, if there is one, and gives up the lock if that was granted to it. A release that
// is under way must not put it into the queue later.
func (a *Acquirer) giveUpEntry(ctx context.Context, name store.Name, e *entry) {
	if e == nil {
		return
	}
	if mayBeQueued, mayArrive := e.giveUp(); mayBeQueued {
		a.Store.Compensate(store.Release{
			Holding: store.Holding{Name: name, Owner: e.Owner, Hold: e.Hold}, Terms: store.Terms{Form: e.Form},
			Work: store.Failed, MayArrive: mayArrive, Until: time.Now().Add(leftAfter), Context: ctx,
		})
	}
}
