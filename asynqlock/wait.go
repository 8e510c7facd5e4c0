package asynqlock

import (
	"context"
	"math"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

const (
	// usualWait and usualWaiters are how long and how many tasks wait for a key in a
	// worker, where nobody says otherwise.
	usualWait    = time.Second
	usualWaiters = 4
	// defaultLastWait is longer than the default lease, so that a holder that died
	// does not cost a task its last attempt.
	defaultLastWait = time.Minute
	// leastMargin is the least time between the end of a wait and a task's deadline.
	leastMargin = 100 * time.Millisecond
	// unlimited is the longest wait of a task without a deadline.
	unlimited = time.Duration(math.MaxInt64)
)

// lockOptions are those of one run, which may wait for longest at most. The bound is that of parking.
func (g *guard) lockOptions(ctx context.Context, me ownerPrefix, bound []core.Option, longest time.Duration) []core.Option {
	opts := make([]core.Option, 0, len(g.config.Options)+4)
	last := isLastAttempt(ctx)
	switch {
	case g.config.OnBusy == Drop:
		opts = append(opts, adapter.Fallback(core.NoWait()))
	case last:
		// Without a bound on waiters: one too many would be archived.
		opts = append(opts, adapter.Fallback(core.Wait(g.config.LastWait)))
	default:
		wait := min(usualWait, longest/2) // the work takes time as well
		opts = append(opts, adapter.Fallback(core.Wait(wait), core.MaxWaiters(usualWaiters)))
	}
	opts = append(opts, g.config.Options...)
	if longest < unlimited {
		opts = append(opts, adapter.WaitAtMost(longest))
	}
	if me != "" {
		opts = append(opts, adapter.OwnerBegin(string(me)))
	}
	if !last {
		opts = append(opts, bound...)
	}
	return opts
}

// longestWait is how long a task may wait so that asynq has not given it up before
// the refusal arrives.
func longestWait(ctx context.Context) time.Duration {
	deadline, limited := ctx.Deadline()
	if !limited {
		return unlimited
	}
	left := time.Until(deadline)
	return max(0, left-max(left/10, leastMargin))
}

// isLastAttempt reports that asynq archives the task if it fails now.
func isLastAttempt(ctx context.Context) bool {
	retried, ok := asynq.GetRetryCount(ctx)
	most, also := asynq.GetMaxRetry(ctx)
	return ok && also && retried >= most
}
