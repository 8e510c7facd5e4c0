package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// grant is a lock that a call has got: by an answer of Redis, by a release anywhere that has
// granted it, or handed off in memory.
type grant struct {
	acquisition
	times
	token   int64
	hold    string
	resends *conn.Resends // of the acquisition
}

// acquisition is what Redis knows of a lock. After a hand-off in memory it is that of the
// first holder.
type acquisition struct {
	form       store.Form
	owner      string
	redisToken int64
	length     time.Duration
	fixed      bool          // nobody renews it
	ahead      bool          // the token is ahead of the clock of Redis
	heldSince  schedule.Time // by this process
}

// times are those of a lease that a renewal moves.
type times struct {
	deadline  schedule.Time // when Redis may have ended it, and a little before
	ends      schedule.Time // when Redis ends it, and not before
	renewAt   schedule.Time
	unrenewed bool // a release has granted it, and it was not renewed yet
}

// timesOf are those of a lease that lasts for left from a time before Redis was asked on.
func (e *engine) timesOf(sent time.Time, left time.Duration) times {
	at := schedule.At(sent)
	return times{deadline: at.Add(left - e.margin(left)), ends: at.Add(left), renewAt: e.together(at.Add(left/3), left)}
}

// margin makes the holder stop a little before the lease ends in Redis, for
// timers that fire late under load; in a quorum also for clocks that run at
// different speeds, as Redlock has it.
func (e *engine) margin(length time.Duration) time.Duration {
	if e.store.Can.Differ {
		return length/100 + 2*time.Millisecond
	}
	return min(length/100, 10*time.Millisecond)
}

// together moves a renewal forward, by a twentieth of the time between two at most, so
// that it is sent with others.
func (e *engine) together(at schedule.Time, length time.Duration) schedule.Time {
	if grain := schedule.Time(length / 60); grain > 0 {
		at -= (at - e.started) % grain
	}
	return at
}

// A release grants the lock to the entry that waits first, and the message about it
// has what the process needs to start at once. The lock then lasts for
// [store.GrantLease] only, so that it is not lost for long on a process that is dead or
// hangs; the holder renews it to its own lease.

const (
	// renewGrantAfter spares the renewal to those that are done with the lock by then.
	renewGrantAfter = 5 * time.Millisecond
	// clockDrift is more than the clocks of Redis and of this machine part within a second.
	clockDrift = 2 * time.Millisecond
)

// message takes what a release tells this process of a lock.
func (e *engine) message(lock, text string) {
	m, err := store.ReadMessage(text)
	switch {
	case err != nil: // none of ours
	case m.Token == 0:
		e.queues.Signal(lock, store.Open)
	default:
		e.granted(lock, m)
	}
}

// granted gives a lock to the call that waits by the entry which Redis has granted it to.
// If that is too late to be sure, or the call is just asking, it asks, with the same hold. A
// hold with which nobody waits is none of ours, or is being released.
func (e *engine) granted(lock string, m store.Message) {
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
		return q.Form == w.form && w.isUsual() && w.settings.Lease >= store.GrantLease && e.store.Can.PassOn &&
			ends.Sub(now) >= store.GrantLease/2
	})
	if ends != 0 && now.Sub(ends) > lateGrant-store.GrantLease {
		e.missedMessage()
	}
	switch {
	case w != nil:
		to.spend()
		w.Pass(grant{
			acquisition: acquisition{form: w.Request.form, owner: to.Hold, redisToken: m.Token, length: w.Request.settings.Lease, ahead: m.Ahead},
			times:       times{deadline: ends.Add(-e.margin(store.GrantLease)), ends: ends, renewAt: now.Add(renewGrantAfter), unrenewed: true},
			token:       m.Token, hold: to.Hold, resends: &to.resends,
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
