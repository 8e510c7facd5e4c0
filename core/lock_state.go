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

// states are the words for what Redis has.
var states = [...]State{
	store.StatusFree:           StateFree,
	store.StatusHeld:           StateHeld,
	store.StatusShared:         StateShared,
	store.StatusPermits:        StatePermits,
	store.StatusDedupWindow:    StateDedupWindow,
	store.StatusParked:         StateParked,
	store.StatusAnswered:       StateAnswered,
	store.StatusOutcomeUnknown: StateOutcomeUnknown,
	store.StatusForeign:        StateForeign,
}
