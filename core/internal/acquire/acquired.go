package acquire

import (
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// A call learns in one of three ways that it has a lock: by the answer of Redis, by the message of a release, anywhere,
// that has granted the lock to the entry of its queue, and by a hand-off in memory from a call of its process.

// acquiredByAnswer makes the lock that Redis has granted, unless it comes too late.
func (c *call) acquiredByAnswer(claim *store.Claim, r store.Acquired) (h *lease.Handle, err error) {
	g := lease.AcquiredLock{
		Acquisition: lease.Acquisition{
			Terms: r.Terms, Name: c.name, Owner: claim.Owner, Token: r.Token, RedisToken: r.Token, Ahead: r.Ahead, Attempt: int32(r.Attempt),
		},
		Times: c.acquirer.TimesOf(r.Sent, min(r.Lease, r.TTL)), // a fixed lease that was entered from elsewhere has run for a while
		Hold:  claim.Hold, Resends: c.acquirer.Store.LateCopies(claim),
	}
	if r.Fixed {
		g.RenewAt = 0
	}
	if c.ctx.Err() != nil {
		err = c.gaveUp()
	} else {
		h, err = c.newLease(g, lease.Conditions{OwnerKnown: !c.owner().IsSimple() || r.Form.Stays(), Outer: c.outerOf(r)})
	}
	if err != nil {
		claim.CompensateAll(r.Terms.Lease)
		return nil, err
	}
	return h, nil
}

// acquiredInMemory makes the lock that the call was given, unless it comes too late.
func (c *call) acquiredInMemory(g lease.AcquiredLock) (*lease.Handle, error) {
	h, err := c.newLease(g, lease.Conditions{})
	if err != nil {
		h.Compensate()
		return nil, err
	}
	return h, nil
}

// outerOf is the handle of another Locker whose lock was entered, if there is one.
func (c *call) outerOf(granted store.Acquired) *lease.Handle {
	if granted.Outermost {
		return nil
	}
	return c.outer
}

// newLease makes the lease of a lock that the call has got just now, with its first handle, on those conditions and those of the call.
func (c *call) newLease(g lease.AcquiredLock, how lease.Conditions) (*lease.Handle, error) {
	how.MaxHold, how.MayLast, how.Group, how.Memory = c.settings.MaxHold, c.settings.MayLast, c.group, c.memory
	c.memory = nil
	return lease.New(c.ctx, &c.acquirer.Registry, g, how)
}

// A release grants the lock to the entry that waits first, and the message about it has what the process needs to start at
// once. The lock then lasts for [store.GrantLease] only, so that it is not lost for long on a process that is dead or hangs;
// the holder renews it to its own lease.

// renewGrantAfter spares the renewal of a granted lock to those that are done with it by then, also by hand-offs in memory.
const renewGrantAfter = 2 * lease.HandOffFor

// clockDrift is more than the clocks of Redis and of this machine part within a second.
const clockDrift = 2 * time.Millisecond

// message takes what a release tells this process of a lock. A hold with which nobody waits is none of ours, or
// is being released.
func (a *Acquirer) message(lock, text string) {
	m, err := store.ReadMessage(text)
	if err != nil { // none of ours
		return
	}
	if m.OpensBargingWindow() {
		a.queues.Signal(lock, store.BargingWindow)
		return
	}
	for _, found := range a.queues.Find(lock) {
		if found.Entry != nil && m.IsFor(found.Entry.Hold) {
			a.grantByMessage(lock, m, found.Entry)
		}
	}
}

// grantByMessage gives a lock that a release has granted to the call that waits by that entry. If that is too late to
// be sure, or the call is just asking, or wants something that Redis has to know of, it asks, with the same hold.
func (a *Acquirer) grantByMessage(lock string, m store.Message, to *entry) {
	clock, isInUse := to.lastQueued()
	if !isInUse {
		return
	}
	now := schedule.Now()
	ends := grantEnds(m, clock, now)
	if ends != 0 && now.Sub(ends) > lateGrant-store.GrantLease {
		a.grantMissed()
	}
	isSure := ends.Sub(now) >= store.GrantLease/2
	w := a.queues.Choose(lock, func(c *spec, by *entry) bool {
		return by == to && isSure && a.canGrantInMemory(c, to.Form) && c.settings.Lease >= store.GrantLease && to.consume()
	})
	if w == nil {
		a.queues.Signal(lock, 0)
		return
	}
	c := w.Wants
	w.Give(lease.AcquiredLock{
		Acquisition: lease.Acquisition{
			Terms: c.terms(), Name: c.name, Owner: to.Hold, Token: m.Token, RedisToken: m.Token, Ahead: m.Ahead,
		},
		Times: life.Times{Ends: ends.Add(-a.Store.Margin(store.GrantLease)), RenewAt: now.Add(renewGrantAfter), Granted: true},
		Hold:  to.Hold,
	})
}

// grantEnds is a time at which Redis has not ended a granted lock yet, 0 when none is known. The message may have been on
// its way for long. Its age follows from the clock of Redis, as Redis last showed it. A message that seems to come from the
// future shows that this clock was set since: then nothing is known.
func grantEnds(m store.Message, clock store.Clock, arrived schedule.Time) schedule.Time {
	if !clock.IsKnown() {
		return 0
	}
	at := schedule.At(clock.NotBefore(m.At))
	if at.Sub(arrived) > clockDrift {
		return 0
	}
	return min(at, arrived).Add(store.GrantLease)
}

// canGrantInMemory says that the call can have a lock of that form without asking Redis, which would have to know no more of it
// than the form and the lease.
func (a *Acquirer) canGrantInMemory(c *spec, f store.Form) bool {
	return c.terms().IsSimpleIn(f) && c.owner().IsSimple() && c.way().IsSimple() && !a.Store.HandOffNeedsRedis()
}

// handOffInMemory gives the lock to the call of this process that waits first: the process keeps its hold in Redis. That is
// lock cohorting (Dice, Marathe and Shavit, PPoPP 2012). It is false when the lock has to be released, or has other handles.
func (a *Acquirer) handOffInMemory(left lease.Departure) bool {
	if !left.IsLast {
		return false
	}
	// The entry stays: the next call takes it over.
	w := a.queues.Choose(left.Acquired().Name.Lock(), func(c *spec, _ *entry) bool { return a.canHandOff(left, c) })
	if w == nil {
		return false
	}
	left.HandOff(w.Give)
	return true
}

// canHandOff says that a call of this process may have the lock while Redis knows of the present holder only: nothing but the
// token would differ for it.
func (a *Acquirer) canHandOff(left lease.Departure, c *spec) bool {
	return a.canGrantInMemory(c, store.Exclusive) && left.MayBeHandedOff(c.terms())
}

// reclaimUnsent takes the lock, as by a hand-off in memory, if this process has released it, and the release is not on its way yet. It is
// nil where that cannot be, and where others wait for the lock here: then Redis has to be asked.
func (c *call) reclaimUnsent() *lease.Handle {
	a, lock := c.acquirer, c.name.Lock()
	unsent := a.pending.of(lock).last
	isOther := func(head waitqueue.Head[*spec, *entry]) bool { return head.Wants != &c.spec }
	if unsent == nil || c.ctx.Err() != nil || slices.ContainsFunc(a.queues.Find(lock), isOther) ||
		!a.canHandOff(unsent.Departure, &c.spec) || !unsent.withdraw() {
		return nil
	}
	a.pending.end(lock)
	var h *lease.Handle
	unsent.HandOff(func(g lease.AcquiredLock) { h, _ = c.acquiredInMemory(g) }) // nil: it was too late
	return h
}
