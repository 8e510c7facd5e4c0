package lease

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Acquisition is what is known of a lock that was taken, for as long as it is held.
type Acquisition struct {
	store.Terms
	Name       store.Name
	Owner      string
	Token      int64
	RedisToken int64         // by which Redis knows it: an earlier one, after a hand-off in memory
	Ahead      bool          // RedisToken is ahead of the clock of Redis
	Attempt    int32         // the number of that at an idempotent request; 0: it is for none
	HeldSince  schedule.Time // by this process; 0: since now
}

// AcquiredLock is what the lease of a lock begins with that a call has got.
type AcquiredLock struct {
	Acquisition
	life.Times
	Hold    string
	Resends *conn.Resends // of the acquisition
}

// Group is the locks of one call of LockAll, which end together; nil: it is another call.
type Group struct {
	Base   context.Context // of all of them: the caller's, which ends as soon as one of them does
	Cancel context.CancelCauseFunc
	Began  time.Time // the call
}

// Waited is for how long the call has waited.
func (g *Group) Waited() time.Duration {
	if g == nil {
		return 0
	}
	return time.Since(g.Began)
}
