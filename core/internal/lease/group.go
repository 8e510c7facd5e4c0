package lease

import (
	"context"
	"time"
)

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
