package asynqlock

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// waits is why the task that waits has not run yet. It waits for its turn, and not in vain, so it is in no log and no metric of what
// was refused.
type waits struct{ *core.BusyError }

func (w waits) Unwrap() error { return w.BusyError }

// keepOne is for the policy of that name: it runs the task under the lock of its key, by do, or says why it has not run. The
// error is asynq.RevokeTask when the task is to be dropped.
func (g *guard) keepOne(
	ctx context.Context, m marker, run func(context.Context) error, do func(func(context.Context) error, ...core.Option) (bool, error),
) (ran bool, err error) {
	if !adapter.Parks(m.locker) {
		return false, errNoMarkers
	}
	start := func(locked context.Context) error {
		err := m.end(ctx)
		if err == nil {
			_, err = m.remove(ctx)
		}
		for again := true; again && err == nil; {
			if locked.Err() != nil { // that took time
				return context.Cause(locked)
			}
			ran = true
			err = run(locked)
			again, _ = m.remove(ctx) // a failover, or another run of the task, has brought it back, and others were dropped
		}
		return err
	}
	_, err = do(start, core.NoWait())
	var busy *core.BusyError
	if ran || !errors.As(err, &busy) {
		return ran, err
	}
	ttl := markerTTL
	if busy.Done {
		ttl += busy.RetryAfter
	}
	var w waiter
	var most []core.Option
	last := isLastAttempt(ctx)
	if !last {
		w = m.enter(ctx, ttl)
		most = []core.Option{adapter.WaitAtMost(ttl / 2)} // its marker stays for longer
	} else if w, _, _ = m.waiter(ctx); w == thisTask { // asynq may archive it, so that nobody may rely on it
		_, _ = m.remove(ctx)
	}
	switch {
	case w == anotherTask:
		return false, m.drop(ctx, busy)
	case !last && w != thisTask: // it comes again, and whoever comes before it may be the one that waits
		return false, busy
	case !last && busy.Done:
		return false, waits{busy}
	}
	_, err = do(start, most...)
	switch {
	case ran || !errors.As(err, &busy):
		return ran, err
	case !last:
		return false, waits{busy}
	}
	if w, _, _ := m.waiter(ctx); w == anotherTask {
		return false, m.drop(ctx, busy)
	}
	return false, err
}
