package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// A release grants the lock to the position that waits first, and the message about it
// carries what the process needs to start at once. The lock then lasts for
// [store.GrantLease] only, so that it is not lost for long on a process that is dead or
// hangs; the holder renews it to its own lease.

// renewGrantAfter spares the renewal to those that are done with the lock by then.
const renewGrantAfter = 5 * time.Millisecond

// clockDrift is more than the clocks of Redis and of this machine part within a second.
const clockDrift = 2 * time.Millisecond

// startsAtOnce says that a grant of the usual form is all that the call wants. Others ask
// Redis to have what they want.
func (c *call) startsAtOnce() bool {
	return c.isPlain() && !c.isAttempt() && !c.settings.Fixed && c.settings.KeepFor == 0 && c.settings.Lease >= store.GrantLease && c.locker.store.Can.PassOn
}

// message takes what a release tells this process of a lock.
func (l *Locker) message(lock, text string) {
	m, err := store.ReadMessage(text)
	switch {
	case err != nil: // none of ours
	case m.Token == 0:
		l.queues.Signal(lock, store.Open)
	default:
		l.grant(lock, m)
	}
}

// grant gives a lock to the call that waits by the position which Redis has granted it to.
// If that is too late to be sure, or the call is just asking, it asks, with the same hold. A
// hold with which nobody waits is none of ours, or is being released.
func (l *Locker) grant(lock string, m store.Message) {
	now := schedule.Now()
	var ends schedule.Time
	var by *position
	w := l.queues.Choose(lock, func(c *call, p *position) bool {
		if p == nil || !m.IsFor(p.Hold) {
			return false
		}
		ends, by = grantEnds(m, p, now), p
		return p.Form == c.form && c.startsAtOnce() && ends.Sub(now) >= store.GrantLease/2
	})
	if ends != 0 && now.Sub(ends) > lateGrant-store.GrantLease {
		l.missedMessage()
	}
	if w == nil {
		if by != nil {
			l.queues.Signal(lock, 0)
		}
		return
	}
	spend(w)
	c := w.Request
	a := acquisition{form: c.form, owner: by.Hold, redisToken: m.Token, length: c.settings.Lease, ahead: m.Ahead}
	t := times{deadline: ends.Add(-l.margin(store.GrantLease)), ends: ends, renewAt: now.Add(renewGrantAfter), unrenewed: true}
	k := c.open(a, t, m.Token, by.Hold, &by.resends)
	s := k.lease
	if !l.register(s) {
		s.giveBack([]*Lock{k})
		k.cancel(nil)
		w.Pass(nil)
		return
	}
	w.Pass(k)
}

// grantEnds is a time at which Redis has not ended a granted lock yet, 0 when none is known.
// The message may have been on its way for long. Its age follows from the clock of Redis, as
// Redis last told it. A message that seems to come from the future shows that this clock was
// set since: then nothing is known.
func grantEnds(m store.Message, p *position, arrived schedule.Time) schedule.Time {
	clock := p.answered.Load()
	if clock == nil {
		return 0
	}
	at := schedule.At(clock.NotBefore(m.At))
	if at.Sub(arrived) > clockDrift {
		return 0
	}
	return min(at, arrived).Add(store.GrantLease)
}
