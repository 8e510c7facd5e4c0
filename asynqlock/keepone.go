package asynqlock

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

const (
	// markerTTL is how long the marker of a task stays that does not come back. It is longer than asynq takes to
	// restart the task of a worker that died, and than any delay of a refusal.
	markerTTL = 5 * time.Minute
	// markerLease is for how long the marker of a process that dies while it sets or removes one is nobody's.
	markerLease = 30 * time.Second
	// overFor is for how long a worker may stand still that has a task which others have run or dropped meanwhile.
	overFor = time.Hour
	// settlePolls and settlePoll are how often a task asks again while others are about to wait, and the longest time in between.
	settlePolls = 50
	settlePoll  = 20 * time.Millisecond
	// longestMarkerKey is how long a key may be.
	longestMarkerKey = 1024
)

var errNoMarkers = errors.New("asynqlock: OnBusy KeepOne needs exclusive locks on one Redis: " +
	"it cannot be combined with a Locker of core.NewQuorum, or one that has core.Shared or core.Permits")

var errOver = errors.New("asynqlock: another worker has run or dropped the task")

// marker says which task of a key and type waits: a parked lock, whose ticket is the task's. While it is
// there, that task is going to run, and others are dropped. So it goes before the handler starts, and a task that
// does not know what has become of its own marker does not run.
type marker struct {
	locker *core.Locker
	key    string
	task   ownerPrefix
}

func markerOf(ctx context.Context, locker *core.Locker, t *asynq.Task, key string) marker {
	name := keyfunc.Key("KeepOne", t.Type()) + ":" + key
	if len(name) > longestMarkerKey {
		sum := sha256.Sum256([]byte(name))
		name = keyfunc.Key("KeepOne", hex.EncodeToString(sum[:]))
	}
	return marker{locker, name, ownerPrefixOf(ctx)}
}

// over is the key of a dedup window, which is there once the task has been retried and run, or retried and dropped.
func (m marker) over() string { return keyfunc.Key("KeepOne", string(m.task)) }

// end says before the task runs, or is dropped, that a worker which has it from before, and stood still, must not set the marker any
// more: nobody would come. asynq gives a task to another worker as a retry.
func (m marker) end(ctx context.Context) error {
	if n, _ := asynq.GetRetryCount(ctx); n == 0 {
		return nil
	}
	k, err := m.locker.TryLock(ctx, m.over(), core.Name("KeepOne"), core.Lease(markerLease), core.KeepFor(overFor))
	var busy *core.BusyError
	switch {
	case errors.As(err, &busy) && busy.Done:
		return nil
	case err != nil:
		return err
	}
	return k.Unlock(ctx)
}

// waiter is the task that waits, as a marker says.
type waiter int

const (
	unknown     waiter = iota // perhaps this task: another run of it sets or removes the marker
	nobody                    // or another task sets or removes the marker
	thisTask                  // for some time more
	anotherTask               // it runs after this moment
)

func (m marker) waiter(ctx context.Context) (w waiter, left time.Duration, err error) {
	info, err := m.locker.Inspect(ctx, m.key)
	digest := sha1.Sum([]byte(m.task)) // as Inspect tells it
	switch {
	case err != nil || slices.ContainsFunc(info.Holders, m.task.holds):
		return unknown, 0, err
	case !info.Parked:
		return nobody, 0, nil
	case info.Ticket == hex.EncodeToString(digest[:]):
		return thisTask, info.TTL, nil
	default:
		return anotherTask, 0, nil
	}
}

// take takes the lock of the marker, also where it is parked for this task. What the Locker has for its locks is
// overridden.
func (m marker) take(ctx context.Context) (*core.Lock, error) {
	k, err := m.locker.TryLock(ctx, m.key, core.Name("KeepOne"), core.Lease(markerLease),
		adapter.OwnerBegin(string(m.task)), adapter.Ticket(string(m.task)))
	if err == nil {
		adapter.VoidTicket(k) // its release leaves nothing
	}
	return k, err
}

// set has the task wait for ttl, unless another one does. An error means that it does not, or that this is unknown.
func (m marker) set(ctx context.Context, ttl time.Duration) error {
	k, err := m.take(ctx)
	if err != nil {
		return err
	}
	over, err := m.locker.Inspect(ctx, m.over())
	switch {
	case over.Locked:
		err = errOver
	case err == nil:
		err = adapter.Handover(ctx, k, string(m.task), ttl, func() error { return nil })
	}
	if err != nil {
		err = errors.Join(err, k.Abort(ctx))
	}
	return err
}

// remove ends the task's wait, and reports whether it has waited. An error means that it may wait still.
func (m marker) remove(ctx context.Context) (waited bool, err error) {
	w, _, err := m.waiter(ctx)
	switch {
	case err != nil:
		return false, err
	case w == unknown:
		return false, &core.BusyError{Key: m.key, RetryAfter: time.Second}
	case w != thisTask:
		return false, nil
	}
	k, err := m.take(ctx)
	if err != nil {
		return false, err
	}
	return true, k.Unlock(ctx)
}

// enter has the task wait, unless another one does, and returns who waits then. Where several tasks come at once it asks again
// until one of them waits.
func (m marker) enter(ctx context.Context, ttl time.Duration) waiter {
	for range settlePolls {
		w, left, _ := m.waiter(ctx) // of a Redis that does not answer nothing is known
		if w == anotherTask || w == thisTask && left >= ttl/2 {
			return w
		}
		var err error
		if w == thisTask {
			_, err = m.remove(ctx) // what was handed over once cannot be again
		}
		if err == nil {
			err = m.set(ctx, ttl)
		}
		switch {
		case err == nil:
			return thisTask
		case !errors.Is(err, core.ErrNotAcquired): // also outside of a server, where a task has no owner
			return unknown
		}
		select {
		case <-ctx.Done():
			return unknown
		case <-time.After(rand.N(settlePoll)):
		}
	}
	return nobody
}

// drop has asynq revoke the task for another one that waits, unless that has changed.
func (m marker) drop(ctx context.Context, busy error) error {
	if n, _ := asynq.GetRetryCount(ctx); n > 0 {
		if err := m.end(ctx); err != nil {
			return busy
		}
		if w, _, _ := m.waiter(ctx); w != anotherTask { // an earlier worker may have set the marker meanwhile
			return busy
		}
	}
	return fmt.Errorf("%w: another task waits: %w", asynq.RevokeTask, busy)
}

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
