package option

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// LongestWindow is for how long a key may be remembered. A longer time is a mistake.
const LongestWindow = 366 * 24 * time.Hour

// What core/adapter needs of the store.
type (
	Attempt  = store.Attempt
	Answered = store.Answered
)

var (
	ErrReused         = store.ErrReused
	ErrOutcomeUnknown = store.ErrOutcomeUnknown
)

// What core does with a *core.Lock that was taken for an attempt at a request that counts once.
var (
	// AttemptOf returns its number, 0 for a lock of no request.
	AttemptOf func(lock any) int
	// Answer unlocks it and leaves the answer for keep.
	Answer func(ctx context.Context, lock any, answer string, keep time.Duration) error
)
