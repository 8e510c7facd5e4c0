package core

import (
	"context"
	"time"
)

// Observer hears what becomes of locks, for metrics and traces, as promlock and otellock do.
//
// Observe is called from many goroutines, and holds up the call whose news it gets: it should not block, nor take
// or release locks. No other call, renewal or end of a lease waits for it: what no call waits for, such as a loss,
// comes in order from a goroutine of its own, soon after it has happened, and so does all else of that Locker that
// is not news of a call meanwhile. A panic is caught and logged; [runtime.Goexit] may leave the lock taken.
//
// The context is that of the call that wants the lock, and, once it is acquired, [Lock.Context], which
// may be done already; events that belong to no call have one without values. Observe returns it, one
// that descends from it, or nil for it: what it returns for [EventWaiting] it gets with the outcome,
// and what it returns for [EventAcquired] becomes Lock.Context, for the handler to see. For other
// events the result is not used.
type Observer interface {
	Observe(ctx context.Context, e Event) context.Context
}

// EventKind says what an [Event] tells.
type EventKind int

const (
	// EventWaiting: a call wants a lock. One of the next three follows.
	EventWaiting EventKind = iota + 1
	// EventAcquired: the call has the lock. Unless it is a Reentry, EventReleased or EventLost follows.
	EventAcquired
	// EventBusy: the call was refused because somebody else holds the lock. Reason is "no_wait",
	// "wait_over", "max_waiters", "order" (see [Locker.LockAll]) or "deadlock"; "canceled" or "deadline"
	// when its context ended first; or "answered" when it gets what an earlier run of [Once] has come to,
	// or the answer of an earlier attempt at the same request.
	EventBusy
	// EventFailed: the call failed. Reason is "unavailable", "overloaded", "closed", "lost", "max_hold", "invalid_key",
	// "upgrade", "ticket" or "outcome_unknown", after the error of that name; or, for an attempt at an
	// idempotent request, "reused".
	EventFailed
	// EventReleased: the last of the lock's holds was unlocked, or handed over. When Redis has not
	// confirmed it, Reason is "unconfirmed" and Err is [ErrUnavailable].
	EventReleased
	// EventLost: the protection ended before the lock was unlocked. Reason is "deleted" when it was gone
	// before its lease was over, "expired" when the lease was over, "max_hold" when that was because of
	// [MaxHold], and "closed" when [Locker.Close] took the lock away.
	EventLost
	// EventOverdue: the lock is held longer than [MaxHold] permits.
	EventOverdue
	// EventRenewalFailed: the watchdog could not renew the lease, and tries again.
	EventRenewalFailed
	// EventRefused: middleware refused a request or task. Reason is one of EventBusy's or EventFailed's,
	// "dropped" of a task that does not come again, or "setup" when the middleware is set up wrongly.
	EventRefused

	// The rest is of no call, and has no Name; the first two have no Key either.

	// EventGrantMissed: the message about a lock that Redis has granted to a waiting call of this process
	// came late or never. The lock lay idle, for a second at most.
	EventGrantMissed
	// EventUnheard: messages from Redis do not arrive, so waiting calls poll. It comes again with each
	// attempt to subscribe that fails.
	EventUnheard
	// EventCompensating: what became of a command in Redis is unknown, so it is undone until Redis
	// confirms that. EventCompensated follows.
	EventCompensating
	// EventCompensated: Redis has confirmed it, or the lock has ended by itself.
	EventCompensated
	// EventLoad: how much a server has to do, once a second while it is asked, and when an overload begins and ends. It has
	// no Key.
	EventLoad
)

// Event is something that happened to a lock. Fields that do not belong to its Kind are zero; "to"
// and "from" are in the order of the kinds. Kind, Name, Form, Reason, Reentry and Status take few
// values and may label a metric; Key and Err take any number of them, and may hold personal data.
type Event struct {
	Kind    EventKind
	Name    string        // as [Name] or the middleware said, empty if neither did
	Key     string        // as the caller wrote it; not of EventRefused
	Keys    int           // that the call wants, each with events of its own; to EventFailed
	Form    string        // "exclusive", "shared" or "permits", as the call wants the lock, also after a [Lock.Downgrade]; to EventRefused
	Reentry bool          // the context holds this lock already; of EventAcquired
	Reason  string        // a fixed word, where Kind has some
	Status  int           // of the HTTP answer, 0 for a task; of EventRefused
	Waited  time.Duration // for its outcome; from EventAcquired to EventFailed
	HeldFor time.Duration // since Lock has returned; from EventReleased to EventRenewalFailed
	Err     error         // what went wrong, if anything did
	Load    *Load         // of EventLoad
}

// Load is how much a Redis has to do for the locks of this process, or a node of a cluster, a shard of a ring, or a quorum.
type Load struct {
	Server     string        // its address; empty for a quorum, and behind Sentinel
	Window     int           // so many commands may be in flight: more would wait there for too long
	Answer     time.Duration // how long an answer takes lately
	Waiting    int           // calls that wait in this process until they can be sent
	Shed       int           // calls that were refused since the last event of the server, with ErrOverloaded
	Overloaded bool          // the server is asked for more than it can do: calls were refused in the last two seconds
}
