// Package life says where a lease stands, and what becomes of it. It only decides: it has no clock, no mutex, no Redis
// and no errors. What happens to a lease is an event, a method of [Life]. It may return [Effects], which package lease follows
// while it holds the mutex of the lease, or right after that.
//
//	        the last handle leaves                      its release is answered
//	  Held ────────────────────────────────────▶ Leaving ─────────────────────▶ Released
//	 │ ▲ ▲│ all leave but one that re-enters    ▲ │ │  given to the next call
//	 │ │ │└───────────▶ PerhapsFree ── it fails ┘ │ └─────────────────────────▶ HandedOffInMemory
//	 │ │ └─ it succeeds ────┤                     │
//	 │ │ a handover begins, │                     │
//	 ▼ │ is cancelled       │                     │
//	BeingHandedOver ─ whoever gets it was told ───┼───────────────────────────▶ HandedOverByTicket
//	  ├── its time is over ─┼─────────────────────┼─▶ Expired, FixedOver, HeldTooLong, HandoverTooLong (in these two)
//	  ├── Close ────────────┴─────────────────────┼─▶ Closed (not Leaving)
//	  └── Redis knows it no more ─────────────────┴─▶ Deleted, ExpiredInRedis
//
// Beside its state a lease may be granted and not renewed yet, overdue, or have a renewal under way. Each of its handles
// has a state of its own, a [HandleState].
package life

import "github.com/latchkey-go/latchkey/core/internal/schedule"

// State is where a lease stands.
type State uint8

const (
	_               State = iota // there is no lease
	Held                         // a handle is in
	BeingHandedOver              // its only handle is being handed over
	PerhapsFree                  // all have left but handles that are entering: Redis may have freed it, and nothing is lost with it
	Leaving                      // all have left, and releases are not answered

	// These are its ends.
	Released
	HandedOffInMemory  // to the next call of this process
	HandedOverByTicket // to whoever has that

	// By these it was lost, or taken away.
	Expired         // it could not be renewed in time
	FixedOver       // nothing renews a fixed lease
	HeldTooLong     // it was not renewed any more
	HandoverTooLong // nobody knows whether its handover will succeed
	ExpiredInRedis  // which knew it no more, when its time was over
	Deleted         // or somebody else has taken it: Redis knows it no more
	Closed
)

// IsReliedOn says that somebody relies on the lease.
func (s State) IsReliedOn() bool { return s == Held || s == BeingHandedOver }

// HasHandles says that there are handles that have not left.
func (s State) HasHandles() bool { return s.IsReliedOn() || s == PerhapsFree }

// IsEnd says that nothing changes the state any more.
func (s State) IsEnd() bool { return s >= Released }

// IsLost says that the lease has ended, and not by its handles.
func (s State) IsLost() bool { return s >= Expired }

// HandleState is the state of one handle of a lease, which a caller has as a core.Lock. The loss of the lease does not change it: the
// caller has the lock while the handle is [In] and the lease is [Held].
//
//	Entering ── it is refused ─────────────────────────────▶ Out
//	  │                                                       ▲
//	  └─ Redis confirms it ─▶ In ◀─ New                       │
//	                         │ ▲ └────── Unlock, Abort ───────┘
//	  its handover begins or │ │ is cancelled: one that is abandoned leaves at once
//	                         ▼ │
//	                     HandingOver ── Unlock ─▶ Abandoned
//	                         │                        │
//	                         └────────────────────────┴─ whoever gets the lock was told ─▶ HandedOver
type HandleState uint8

const (
	Out         HandleState = iota // it has not entered yet, or has left
	Entering                       // Redis has not confirmed its re-entry: it has nothing yet
	In                             // it has the lock
	HandingOver                    // it is handing the lock over, which nobody can use meanwhile
	Abandoned                      // it was unlocked while it was handing the lock over
	HandedOver                     // it has handed the lock over
)

// Life is where a lease stands, and when what happens to it. Only its events change it.
type Life struct {
	times         Times
	overdueAt     schedule.Time // 0: it may be held for ever
	handoverUntil schedule.Time // at the latest; once that is cancelled, until then
	in            uint32        // handles that have the lock
	entering      uint32        // handles whose re-entry Redis has not confirmed
	leaving       uint32        // releases that are not answered
	state         State
	renewing      bool // a renewal is under way
	overdue       bool // it has been held for too long
}

// Times are what a renewal changes, and what the next call gets by a hand-off in memory.
type Times struct {
	Ends    schedule.Time // when Redis may have ended the lease, and a little before
	RenewAt schedule.Time // 0: nothing renews it, for it is fixed
	Granted bool          // by a release, for a short lease, and not renewed since
}

// Effects are what an event entails.
type Effects struct {
	Ended      State // how the lease has ended, which is told once; 0: it has not, or it was told before
	NoHoldLeft bool  // with Ended: Redis has said that it knows none of its holds
	Renew      bool  // a renewal is to be sent, and [Life.RenewalAnswered] to follow
	Overdue    bool  // the contexts of the handles end, the lease does not
}

// State says where the lease stands.
func (l *Life) State() State { return l.state }

// Times are those of the lease as it is.
func (l *Life) Times() Times { return l.times }

// IsOverdue says that the lease has been held for too long.
func (l *Life) IsOverdue() bool { return l.overdue }

// OverdueAt is when it has been held for too long; 0: never.
func (l *Life) OverdueAt() schedule.Time { return l.overdueAt }

// Holds counts the handles that have not left.
func (l *Life) Holds() int { return int(l.in + l.entering) }

// StopAt is when the holder must stop.
func (l *Life) StopAt() schedule.Time {
	if l.state == BeingHandedOver {
		return l.handoverUntil
	}
	return l.times.Ends
}

// WasBeingHandedOver says that Redis may have found the lock parked when it was asked something then. That it does not know the
// lease says nothing in this case.
func (l *Life) WasBeingHandedOver(asked schedule.Time) bool { return asked <= l.handoverUntil }

// MayBeHandedOffInMemory says that the next call can have the lease as it is.
func (l *Life) MayBeHandedOffInMemory(now schedule.Time) bool {
	return l.state == Leaving && now < l.times.Ends && !l.overdue
}

// NextDue is when to call [Life.Due]: something happens then to a lease that is held. 0: not at all.
func (l *Life) NextDue() schedule.Time {
	if !l.state.IsReliedOn() {
		return 0
	}
	next := l.StopAt()
	if l.becomesOverdue() {
		next = min(next, l.overdueAt)
	}
	if l.isRenewable() {
		next = min(next, l.times.RenewAt)
	}
	return next
}

func (l *Life) becomesOverdue() bool { return l.overdueAt != 0 && !l.overdue }

// isRenewable says that a renewal can be sent. What was granted gets its lease, at least.
func (l *Life) isRenewable() bool {
	return l.times.RenewAt != 0 && l.state != BeingHandedOver && !l.renewing && (!l.overdue || l.times.Granted)
}
