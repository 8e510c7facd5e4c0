package asynqlock

import (
	"context"
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
)

// options are those of one run, which may wait for most at most where limited.
func (g *guard) options(ctx context.Context, me task, waiters int, most time.Duration, limited bool) []core.Option {
	opts := make([]core.Option, 0, len(g.config.Options)+4)
	last := isLastAttempt(ctx)
	switch {
	case g.config.OnBusy == Drop:
		opts = append(opts, adapter.Fallback(core.NoWait()))
	case last:
		// Without a bound on waiters: one too many would be archived.
		opts = append(opts, adapter.Fallback(core.Wait(g.config.LastWait)))
	default:
		wait := usualWait
		if limited {
			wait = min(wait, most/2) // the work takes time as well
		}
		opts = append(opts, adapter.Fallback(core.Wait(wait), core.MaxWaiters(usualWaiters)))
	}
	opts = append(opts, g.config.Options...)
	if limited {
		opts = append(opts, adapter.WaitAtMost(most))
	}
	if me != "" {
		opts = append(opts, adapter.OwnerBegin(string(me)))
	}
	switch {
	case last:
	case waiters == 0:
		opts = append(opts, core.NoWait())
	case waiters > 0:
		opts = append(opts, core.MaxWaiters(waiters))
	}
	return opts
}

// longestWait is how long a task may wait so that asynq has not given it up before
// the refusal arrives; it has no limit where it has no deadline.
func longestWait(ctx context.Context) (most time.Duration, limited bool) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return 0, false
	}
	left := time.Until(deadline)
	return max(0, left-max(left/10, leastMargin)), true
}

// isLastAttempt reports that asynq archives the task if it fails now.
func isLastAttempt(ctx context.Context) bool {
	retried, ok := asynq.GetRetryCount(ctx)
	most, also := asynq.GetMaxRetry(ctx)
	return ok && also && retried >= most
}
