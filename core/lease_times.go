package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

const (
	// renewalsPerLease is how often the watchdog renews within a lease. So a holder endures for all but one
	// part of it that Redis does not answer.
	renewalsPerLease = 3
	// togetherPer is the part of the time between two renewals by which one may be sent earlier, with others.
	togetherPer = 20
	// renewGrantAfter spares the renewal of a granted lock to those that are done with it by then.
	renewGrantAfter = 5 * time.Millisecond
)

// timesOf are those of a lease that lasts for left from a time before Redis was asked on.
func (e *engine) timesOf(sent time.Time, left time.Duration) life.Times {
	at := schedule.At(sent)
	return life.Times{Ends: at.Add(left - e.store.Margin(left)), RenewAt: e.together(at.Add(left/renewalsPerLease), left)}
}

// together has a renewal sent with others, a little earlier.
func (e *engine) together(at schedule.Time, length time.Duration) schedule.Time {
	if grain := schedule.Time(length / renewalsPerLease / togetherPer); grain > 0 {
		at -= (at - e.started) % grain
	}
	return at
}
