package core

import "github.com/latchkey-go/latchkey/core/internal/store"

// State is what a lock is, in a word for people and programs. The words stay.
type State string

// States of a lock. In all but the first one [Info].Locked is set; in the next three somebody is at work.
const (
	StateFree           State = "free"
	StateHeld           State = "held"            // by one, alone
	StateShared         State = "shared"          // see [Shared]
	StatePermits        State = "permits"         // see [Permits]
	StateDedupWindow    State = "dedup_window"    // the work was done, and is not to be done again yet: see [KeepFor]
	StateParked         State = "parked"          // it was handed over, and nobody has resumed it: see [Lock.Handover]
	StateAnswered       State = "answered"        // it has the result of [Once], or the answer to an idempotent request
	StateOutcomeUnknown State = "outcome_unknown" // nobody knows what the last attempt at one of these has done
	StateForeign        State = "foreign"         // it is none of latchkey's: a string, as SET NX leaves it, or a hash in another layout
)

func stateOf(s store.State) State {
	switch {
	case !s.Held:
		return StateFree
	case s.Foreign:
		return StateForeign
	case s.Parked:
		return StateParked
	case s.Answered:
		return StateAnswered
	case s.Unknown:
		return StateOutcomeUnknown
	case s.Holders == nil:
		return StateDedupWindow
	case s.Form.NeedsPermit():
		return StatePermits
	case !s.Form.Alone():
		return StateShared
	}
	return StateHeld
}
