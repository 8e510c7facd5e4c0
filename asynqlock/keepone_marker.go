package asynqlock

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
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
	until  time.Time // the task's asynq.Deadline, after which it does not run; zero: it has none
}

// ownerUntil is the owner of a marker that ends at a task's deadline: what all of the task's owners begin with, and the deadline.
var ownerUntil = regexp.MustCompile(`^(asynq:[0-9a-f]{32}:)([0-9]+):`)

func markerOf(ctx context.Context, locker *core.Locker, t *asynq.Task, key string) marker {
	name := keyfunc.Key("KeepOne", t.Type()) + ":" + key
	if len(name) > longestMarkerKey {
		sum := sha256.Sum256([]byte(name))
		name = keyfunc.Key("KeepOne", hex.EncodeToString(sum[:]))
	}
	m := marker{locker: locker, key: name, task: ownerPrefixOf(ctx)}
	// asynq has a Deadline in whole seconds, and a Timeout beside one. It adds a Timeout alone to the time at which the task begins.
	if deadline, limited := ctx.Deadline(); limited && deadline.Nanosecond() == 0 {
		m.until = deadline
	}
	return m
}

// owner is what the owner of the marker begins with.
func (m marker) owner() string {
	if m.until.IsZero() {
		return string(m.task)
	}
	return string(m.task) + strconv.FormatInt(m.until.Unix(), 10) + ":"
}

// of is the marker of the task that has set it, as Inspect tells.
func (m marker) of(info core.Info) marker {
	m.task, m.until = "", time.Time{}
	if owner := ownerUntil.FindStringSubmatch(info.HandedOverBy); owner != nil {
		seconds, _ := strconv.ParseInt(owner[2], 10, 64)
		m.task, m.until = ownerPrefix(owner[1]), time.Unix(seconds, 0)
	}
	return m
}

// outlives reports that asynq may run the task after the other one's deadline.
func (m marker) outlives(other marker) bool {
	return !other.until.IsZero() && (m.until.IsZero() || m.until.After(other.until))
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
	shorterTask               // another one, whose deadline is over while this one may still run
	anotherTask               // it runs after this moment
)

func (m marker) waiter(ctx context.Context) (w waiter, info core.Info, err error) {
	info, err = m.locker.Inspect(ctx, m.key)
	digest := sha1.Sum([]byte(m.task)) // as Inspect tells it
	switch {
	case err != nil || slices.ContainsFunc(info.Holders, m.task.holds):
		return unknown, info, err
	case info.State != core.StateParked:
		return nobody, info, nil
	case info.Ticket == hex.EncodeToString(digest[:]):
		return thisTask, info, nil
	case m.outlives(m.of(info)):
		return shorterTask, info, nil
	default:
		return anotherTask, info, nil
	}
}

// take takes the lock of the marker, also where it is parked for this task. What the Locker has for its locks is
// overridden.
func (m marker) take(ctx context.Context) (*core.Lock, error) {
	k, err := m.locker.TryLock(ctx, m.key, core.Name("KeepOne"), core.Lease(markerLease),
		adapter.OwnerBegin(m.owner()), adapter.Ticket(string(m.task)))
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
	if !m.until.IsZero() {
		ttl = min(ttl, time.Until(m.until))
	}
	for range settlePolls {
		w, info, _ := m.waiter(ctx) // of a Redis that does not answer nothing is known
		if w == anotherTask || w == thisTask && info.TTL >= ttl/2 {
			return w
		}
		var err error
		switch w {
		case thisTask:
			_, err = m.remove(ctx) // what was handed over once cannot be again
		case shorterTask: // it is dropped when it comes
			_, err = m.of(info).remove(ctx)
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
