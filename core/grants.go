package core

import (
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// A call learns in one of three ways that it has a lock: by the answer of Redis, by the message of a release, anywhere,
// that has granted the lock to the entry of its queue, and by a hand-off in memory from a call of its process.

// lockOfAnswer makes the lock that Redis has granted, unless it comes too late.
func (c *lockCall) lockOfAnswer(claim *store.Claim, r store.Grant) (*Lock, error) {
	g := grant{
		acquisition: acquisition{
			Terms: r.Terms, owner: claim.Owner, redisToken: r.Token, ahead: r.Ahead, attempt: int32(r.Attempt),
		},
		Times: c.engine.timesOf(r.Sent, min(r.Lease, r.TTL)), // a fixed lease that was entered from elsewhere has run for a while
		token: r.Token, hold: claim.Hold, resends: c.engine.store.LateCopies(claim),
	}
	if r.Fixed {
		g.RenewAt = 0
	}
	overdueAt := c.overdueAt()
	if outer := c.outer; outer != nil && !r.Outermost {
		g.Window, overdueAt = outer.Window, outer.life.OverdueAt()
		if r.Token == outer.redisToken {
			g.token = outer.token // handed off, it has one that Redis does not know
		}
	}
	k := c.makeLock(g, overdueAt)
	s := k.lease
	if !c.owner().Usual() || s.Form.Stays() {
		s.ownerKnown.Store(true)
	}
	var err error
	if c.ctx.Err() != nil {
		err = c.gaveUp()
	} else {
		err = s.start()
	}
	if err != nil {
		k.under.end(err)
		claim.Withdraw(s.Lease)
		return nil, err
	}
	return k, nil
}

// lockGivenInMemory makes the lock that the call was given, unless it comes too late.
func (c *lockCall) lockGivenInMemory(g grant) (*Lock, error) {
	k := c.makeLock(g, c.overdueAt())
	if err := k.lease.start(); err != nil {
		k.under.end(err)
		k.lease.giveBack(&k.handle, life.Effects{})
		return nil, err
	}
	return k, nil
}

// overdueAt is when the call will have held for too long what it gets now; 0: never.
func (c *lockCall) overdueAt() schedule.Time {
	if c.settings.MaxHold <= 0 {
		return 0
	}
	return schedule.Now().Add(c.settings.MaxHold)
}

// makeLock makes the lease of a lock that the call has got just now, with its first handle.
func (c *lockCall) makeLock(g grant, overdueAt schedule.Time) *Lock {
	m := c.memory
	if c.memory = nil; m == nil {
		m = new(lockMemory)
	}
	s, k := &m.lease, &m.first
	s.acquisition, s.engine, s.first, s.name, s.token, s.since = g.acquisition, c.engine, &k.handle, c.name, g.token, schedule.Now()
	s.life = life.New(&k.state, g.Times, overdueAt)
	switch {
	case s.ownerKnown != nil: // handed off
	case c.group != nil:
		s.ownerKnown = &c.group.ownerKnown
	default:
		s.ownerKnown = &s.ownOwnerKnown
	}
	if s.heldSince == 0 {
		s.heldSince = s.since
	}
	k.open(c.ctx, c.group, s, g.hold, g.resends)
	s.handles = &k.handle
	return k
}

// A release grants the lock to the entry that waits first, and the message about it has what the process needs to start at
// once. The lock then lasts for [store.GrantLease] only, so that it is not lost for long on a process that is dead or hangs;
// the holder renews it to its own lease.

// clockDrift is more than the clocks of Redis and of this machine part within a second.
const clockDrift = 2 * time.Millisecond

// message takes what a release tells this process of a lock. A hold with which nobody waits is none of ours, or
// is being released.
func (e *engine) message(lock, text string) {
	m, err := store.ReadMessage(text)
	if err != nil { // none of ours
		return
	}
	if m.Token == 0 {
		e.queues.Signal(lock, store.Open)
		return
	}
	for _, found := range e.queues.Find(lock) {
		if found.Entry != nil && m.IsFor(found.Entry.Hold) {
			e.grantedByMessage(lock, m, found)
		}
	}
}

// grantedByMessage gives a lock that a release has granted to the call that waits by that entry. If that is too late to
// be sure, or the call is just asking, or wants something else than the usual lock, it asks, with the same hold.
func (e *engine) grantedByMessage(lock string, m store.Message, found waitqueue.Head[*want, *entry]) {
	call, to := found.Request, found.Entry
	clock, isInUse := to.lastQueued()
	if !isInUse {
		return
	}
	now := schedule.Now()
	ends := grantEnds(m, clock, now)
	if ends != 0 && now.Sub(ends) > lateGrant-store.GrantLease {
		e.missedMessage()
	}
	isSure := ends.Sub(now) >= store.GrantLease/2
	if isSure && e.mayGetInMemory(call, to.Form) && call.settings.Lease >= store.GrantLease {
		if w := e.queues.Choose(lock, found, (*entry).spend); w != nil {
			w.Give(grant{
				acquisition: acquisition{Terms: call.terms(), owner: to.Hold, redisToken: m.Token, ahead: m.Ahead},
				Times:       life.Times{Ends: ends.Add(-e.store.Margin(store.GrantLease)), RenewAt: now.Add(renewGrantAfter), Granted: true},
				token:       m.Token, hold: to.Hold,
			})
			return
		}
	}
	e.queues.Signal(lock, 0)
}

// grantEnds is a time at which Redis has not ended a granted lock yet, 0 when none is known. The message may have been on
// its way for long. Its age follows from the clock of Redis, as Redis last showed it. A message that seems to come from the
// future shows that this clock was set since: then nothing is known.
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

// mayGetInMemory says that the call can have a lock of that form without asking Redis, which would have to know no more of it
// than the form and the lease.
func (e *engine) mayGetInMemory(w *want, f store.Form) bool {
	return w.terms().OrdinaryIn(f) && w.owner().Usual() && w.way().Free() && !e.store.HandOffNeedsRedis()
}

// handOffFor is how long a process may hand the lock off from call to call before others have their chance.
const handOffFor = 10 * time.Millisecond

// handOffInMemory gives the lock to the call of this process that waits first: the process keeps its hold in Redis. That is
// lock cohorting (Dice, Marathe and Shavit, PPoPP 2012). k was the last to leave: of several at once, one is. It is false
// when the lock has to be released.
func (s *lease) handOffInMemory(k *Lock) bool {
	queues, lock := &s.engine.queues, s.name.Lock()
	for _, found := range queues.Find(lock) {
		if !s.mayHandOffTo(found.Request) {
			continue
		}
		if w := queues.Choose(lock, found, func(*entry) bool { return true }); w != nil { // the next call takes over the entry
			w.Give(s.grantInMemory(k))
			return true
		}
	}
	return false
}

// grantInMemory ends the lease, and is what the next call gets.
func (s *lease) grantInMemory(k *Lock) grant {
	s.mu.Lock()
	g := grant{acquisition: s.acquisition, Times: s.life.Times, token: s.token + 1, hold: k.id, resends: k.resends}
	_ = s.unlockAfter(s.life.HandOffInMemory())
	return g
}

// mayHandOffTo says that a call of this process may have the lock while Redis knows of the present holder only.
func (s *lease) mayHandOffTo(call *want) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := schedule.Now()
	// Nothing but the token would differ for the next holder.
	isAlike := s.engine.mayGetInMemory(call, store.Exclusive) && call.terms() == s.Terms && !s.ownerKnown.Load()
	// The next token must be below what Redis would give by its clock, should the lock end without its release.
	held := now.Sub(s.heldSince)
	hasToken := !s.ahead && s.token-s.redisToken < held.Microseconds()
	return s.life.MayBeHandedOffInMemory(now) && isAlike && hasToken && held < handOffFor && !s.engine.isClosing()
}

// takeOver takes the lock, as by a hand-off in memory, if this process has released it, and the release is not on its way yet. It is
// nil where that cannot be, and where others wait for the lock here: then Redis has to be asked.
func (c *lockCall) takeOver() *Lock {
	e, lock := c.engine, c.name.Lock()
	u := e.givingUp.of(lock).last
	isOther := func(head waitqueue.Head[*want, *entry]) bool { return head.Request != &c.want }
	if u == nil || c.ctx.Err() != nil || slices.ContainsFunc(e.queues.Find(lock), isOther) ||
		!u.lease.mayHandOffTo(&c.want) || !u.sent.Withdraw() || !u.late.Stop() {
		return nil
	}
	e.givingUp.end(lock)
	k, _ := c.lockGivenInMemory(u.lease.grantInMemory(u.lock)) // nil: it was too late
	return k
}
