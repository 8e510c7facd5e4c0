// Package life says where a lease stands, and what becomes of it. It only decides: it has no clock, no mutex, no Redis
// and no errors. What happens to a lease is an event, a method of [Life]. It returns [Effects], which core follows while
// it holds the mutex of the lease, or right after that.
//
//	        the last handle leaves                      its release is answered
//	  Held ────────────────────────────────────▶ Leaving ─────────────────────▶ Released
//	 │ ▲ ▲│ all leave but one that re-enters    ▲ │ │  given to the next call
//	 │ │ │└───────────▶ PerhapsFree ── it fails ┘ │ └─────────────────────────▶ HandedOff
//	 │ │ └─ it succeeds ────┤                     │
//	 │ │ park, unpark       │                     │
//	 ▼ │                    │                     │
//	Parked ─ whoever gets it was told ────────────┼───────────────────────────▶ HandedOver
//	  ├── its time is over ─┼─────────────────────┼─▶ Expired, FixedOver, HeldTooLong, ParkedTooLong   (Held, Parked)
//	  ├── Close ────────────┴─────────────────────┼─▶ Closed                                           (not Leaving)
//	  └── Redis knows it no more ─────────────────┴─▶ Deleted, ExpiredInRedis
//
// Beside its state a lease may be granted and not renewed yet, overdue, or have a renewal under way. Each of its handles
// has a state of its own, a [Handle].
package life

import "github.com/latchkey-go/latchkey/core/internal/schedule"

// State is where a lease stands.
type State uint8

const (
	_           State = iota // there is no lease
	Held                     // a handle is in
	Parked                   // its only handle is being handed over
	PerhapsFree              // all have left but handles that are entering: Redis may have freed it, and nothing is lost with it
	Leaving                  // all have left, and releases are not answered

	// These are its ends.
	Released
	HandedOff  // in memory, to the next call of this process
	HandedOver // to whoever has the ticket

	// By these it was lost, or taken away.
	Expired        // it could not be renewed in time
	FixedOver      // nothing renews a fixed lease
	HeldTooLong    // it was not renewed any more
	ParkedTooLong  // nobody knows whether its handover will succeed
	ExpiredInRedis // which knew it no more, when its time was over
	Deleted        // or somebody else has taken it: Redis knows it no more
	Closed
)

// IsHeld says that somebody relies on the lease.
func (s State) IsHeld() bool { return s == Held || s == Parked }

// HasHandles says that there are handles that have not left.
func (s State) HasHandles() bool { return s.IsHeld() || s == PerhapsFree }

// IsEnd says that nothing changes the state any more.
func (s State) IsEnd() bool { return s >= Released }

// IsLost says that the lease has ended, and not by its handles.
func (s State) IsLost() bool { return s >= Expired }

// IsTimeOver says that the lease was lost when its time was over, not before.
func (s State) IsTimeOver() bool { return s >= Expired && s <= ExpiredInRedis }

// Life is where a lease stands, and when what happens to it.
type Life struct {
	ends        schedule.Time // when Redis may have ended it, and a little before
	renewAt     schedule.Time // 0: nothing renews it, for its lease is fixed
	overdueAt   schedule.Time // 0: it may be held for ever
	parkedUntil schedule.Time // at the latest; once it is unparked, until then
	in          uint32        // handles that have the lock
	entering    uint32        // handles whose re-entry Redis has not confirmed
	leaving     uint32        // releases that are not answered
	state       State
	granted     bool // by a release, for a short lease, and not renewed since
	renewing    bool // a renewal is under way
	overdue     bool // it has been held for too long
}

// Times are what a renewal changes.
type Times struct {
	Ends    schedule.Time // when Redis may have ended the lease, and a little before
	RenewAt schedule.Time // 0: nothing renews it, for it is fixed
	Granted bool          // by a release, for a short lease, and not renewed since
}

// Effects are what an event entails.
type Effects struct {
	Ended   State         // how the lease has ended, which is told once; 0: it has not, or it was told before
	Renew   bool          // a renewal is to be sent, and [Life.RenewalAnswered] to follow
	Overdue bool          // the contexts of the handles end, the lease does not
	Gone    bool          // with Ended: Redis has said that it knows none of its holds
	Next    schedule.Time // when to call [Life.Due]; 0: as before, Never: not at all
}

// Never is no time.
const Never schedule.Time = -1

// State says where the lease stands.
func (l *Life) State() State { return l.state }

// Times are what a hand-off gives to the next call.
func (l *Life) Times() Times { return Times{Ends: l.ends, RenewAt: l.renewAt, Granted: l.granted} }

// IsGranted says that a release has granted it, for a short lease, and that it was not renewed since.
func (l *Life) IsGranted() bool { return l.granted }

// IsOverdue says that the lease has been held for too long.
func (l *Life) IsOverdue() bool { return l.overdue }

// OverdueAt is when it has been held for too long; 0: never.
func (l *Life) OverdueAt() schedule.Time { return l.overdueAt }

// Holds counts the handles that have not left.
func (l *Life) Holds() int { return int(l.in + l.entering) }

// StopAt is when the holder must stop.
func (l *Life) StopAt() schedule.Time {
	if l.state == Parked {
		return l.parkedUntil
	}
	return l.ends
}

// WasParked says that Redis may have found the lock parked when it was asked something then. That it does not know the
// lease says nothing in this case.
func (l *Life) WasParked(asked schedule.Time) bool { return asked <= l.parkedUntil }

// MayBeHandedOff says that the next call can have the lease as it is.
func (l *Life) MayBeHandedOff(now schedule.Time) bool {
	return l.state == Leaving && now < l.ends && !l.overdue
}
