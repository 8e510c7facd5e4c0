// Package option holds what core shares with core/adapter, and with nobody else: the settings of
// a call, and the key by which an adapter gets at core's inside.
package option

import "github.com/latchkey-go/latchkey/core/internal/store"

// Key is the argument of core.ForAdapter, which nobody else can make.
type Key struct{ _ struct{} }

// ContextKey is where a context of string keys has its lock.
const ContextKey = "github.com/latchkey-go/latchkey/core.Lock"

// What core/adapter needs of the store.
type (
	Attempt  = store.Attempt
	Answered = store.Answered
)

var (
	ErrReused         = store.ErrReused
	ErrOutcomeUnknown = store.ErrOutcomeUnknown
)
