package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/contention"
	"github.com/latchkey-go/latchkey/internal/limitedlog"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var (
	errNoLocker = errors.New("asynqlock: no Locker: give one to With, or call core.SetDefault")
	errTwice    = errors.New("Once is inside of middleware that has locked the same key: leave one of them out, or give Once a key of its own")
)

// guard is a middleware's configuration, ready for use.
type guard struct {
	config   Config // has Keys, also where a user gave Key
	all      bool   // Keys may return several
	forms    adapter.Forms[*asynq.Task]
	running  sync.Map // the context of a task that runs under the lock of a key: of several, perhaps of none
	backlogs *backlogs
	parking  *parking // nil: tasks are not parked
	noLocker sync.Once
	log      limitedlog.Log
}

// process runs next under the lock of the task's key, or returns why it must not.
func (g *guard) process(ctx context.Context, t *asynq.Task, next asynq.Handler) error {
	if g.parking != nil {
		g.parking.workers.taskBegins()
		defer g.parking.workers.taskEnds()
	}
	if g.config.Skip != nil && g.config.Skip(t) {
		return next.ProcessTask(ctx, t)
	}
	keys, err := g.config.Keys(t)
	if errors.Is(err, keyfunc.ErrSkip) {
		return next.ProcessTask(ctx, t)
	}
	locker := g.locker()
	if err != nil {
		if locker != nil {
			adapter.Notify(ctx, locker, core.Event{Kind: core.EventRefused, Reason: "invalid_key", Err: err}, g.config.Options...)
		}
		return g.noKey(ctx, t, err)
	}
	if locker == nil {
		g.noLocker.Do(func() {
			slog.ErrorContext(ctx, "latchkey: a task has failed because the middleware has no Locker; give one to With, or call core.SetDefault")
		})
		return errNoLocker
	}

	me := g.ownerPrefix(ctx)
	longest := longestWait(ctx)
	bound, acquired, leave := g.parking.join(keys)
	defer leave()
	opts := g.lockOptions(ctx, me, bound, longest)
	if !g.config.Once {
		opts = append(opts, g.ticketOptions(ctx, keys)...)
	}
	opts = g.forms.Options(t, opts)
	began := time.Now()
	run := func(locked context.Context) error {
		acquired()
		for _, key := range keys {
			g.backlogs.acquired(key)
			g.running.Store(key, locked)
			defer g.running.Delete(key)
		}
		return work(ctx, locked, keys, t, next)
	}
	do := func(run func(context.Context) error, more ...core.Option) (bool, error) {
		opts := append(opts[:len(opts):len(opts)], more...)
		if g.all {
			return adapter.DoAll(ctx, locker, keys, run, opts...)
		}
		return adapter.Do(ctx, locker, keys[0], run, opts...)
	}
	var ran bool
	switch {
	case g.config.Once:
		ran, err = once(ctx, locker, keys[0], t, run, opts)
	case g.config.OnBusy == KeepOne:
		ran, err = g.keepOne(ctx, markerOf(ctx, locker, t, keys[0]), run, do)
	default:
		ran, err = do(run)
	}
	if ran {
		acquired() // a task that was skipped has found the key free, too
		return err
	}
	var busy *core.BusyError
	var refused *refusal
	reason, waits := "", errors.As(err, new(waits)) // the reason is empty: what the error says
	switch {
	case errors.As(err, &busy) && len(busy.Circle) == 1:
		err, reason = fmt.Errorf("%w: %w", errTwice, err), "setup"
	case errors.Is(err, asynq.RevokeTask):
		refused = &refusal{cause: err}
	case busy != nil:
		refused = g.refuse(ctx, locker, me, busy)
	}
	drops := refused != nil && errors.Is(refused, asynq.RevokeTask)
	if drops {
		reason = "dropped"
	}
	if adapter.Validate(opts...) != nil { // Observers are notified all the same
		opts = g.config.Options
	}
	if !waits {
		adapter.Notify(ctx, locker, core.Event{Kind: core.EventRefused, Reason: reason, Err: err}, opts...)
	}
	var failed *core.LockError
	switch {
	case refused != nil:
		if drops {
			g.logInVain(ctx, t, "a task was dropped because its key is busy", err)
		} else {
			settingsMade.warnOfMissing(ctx, g.log.Logger())
			if !waits && time.Since(began) >= contention.LongWait {
				g.logInVain(ctx, t, "a task has waited for its lock in vain", err)
			}
		}
		if time.Since(began) >= longest {
			refused.cause = fmt.Errorf("its deadline is near: %w", refused.cause)
		}
		return refused
	case reason != "":
		return &failure{err}
	case errors.Is(err, core.ErrInvalidKey):
		return g.noKey(ctx, t, err)
	case errors.Is(err, core.ErrClosed):
		return &refusal{cause: err, due: time.Now().Add(rand.N(maxClosingDelay))}
	case errors.Is(err, core.ErrOverloaded) && errors.As(err, &failed):
		wait := max(failed.RetryAfter, minOverloadDelay)
		return &refusal{cause: err, due: time.Now().Add(wait + rand.N(wait))}
	default:
		return &failure{err}
	}
}

// locker is nil where none is set.
func (g *guard) locker() *core.Locker {
	if g.config.Locker != nil {
		return g.config.Locker
	}
	return core.Default()
}

// noKey has asynq archive a task, of which only the log tells.
func (g *guard) noKey(ctx context.Context, t *asynq.Task, err error) error {
	format := "asynqlock: the key of a task of type %q cannot be used: %w: %w"
	kind := "a task was refused because its key cannot be used"
	if errors.Is(err, keyfunc.ErrMissing) {
		format = "asynqlock: no key for a task of type %q: %w: %w"
		kind = "a task was refused because it has no key"
	}
	id, _ := asynq.GetTaskID(ctx)
	g.log.Limited(ctx, slog.LevelWarn, kind, "type", t.Type(), "task", id, "part", keyfunc.PartName(err), "error", err)
	return fmt.Errorf(format, t.Type(), asynq.SkipRetry, err)
}

// logInVain logs what asynq's own line of a task lacks: its key, and who has it.
func (g *guard) logInVain(ctx context.Context, t *asynq.Task, kind string, busy error) {
	id, _ := asynq.GetTaskID(ctx)
	contention.WriteInVain(ctx, &g.log, g.locker(), kind, busy, "type", t.Type(), "task", id)
}

// refuse decides about a task whose key is busy. For Drop it asks Redis who holds the key; where
// Redis cannot tell, the task is tried again soon.
func (g *guard) refuse(ctx context.Context, locker *core.Locker, me ownerPrefix, busy *core.BusyError) *refusal {
	revoked := &refusal{cause: fmt.Errorf("%w: %w", asynq.RevokeTask, busy)}
	drop := g.config.OnBusy == Drop
	switch {
	case busy.Done && drop:
		return revoked
	case busy.Done:
		// In the whole second after the window: asynq drops fractions, and the task would come a little early.
		return &refusal{cause: busy, due: time.Now().Add(busy.RetryAfter).Truncate(time.Second).Add(time.Second)}
	case drop:
		info, err := locker.Inspect(ctx, busy.Key)
		// A lock that is handed over may be parked for this very task.
		if err == nil && info.Locked && info.State != core.StateParked && !slices.ContainsFunc(info.Holders, me.holds) {
			return revoked
		}
	}
	if isLastAttempt(ctx) { // asynq archives it
		return &refusal{cause: busy}
	}
	due, parked := g.parking.park(ctx, busy.Key)
	if !parked {
		due = g.backlogs.nextRetry(busy.Key) // it counts only the tasks that come back by it
	}
	return &refusal{cause: busy, due: due}
}
