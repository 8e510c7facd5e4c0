// Package gocronlock has jobs of gocron run in one of several processes: [Elector] in the one
// that leads, [NewLocker] in any of them, each run once.
//
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronlock.NewLocker(locker, 45*time.Minute)))
//
// gocron tells neither the lock nor its loss to a job, which goes on when the lock is lost. Where
// that must not be, run the whole scheduler within [core.Locker.Lead], with gocron.WithContext, as in
// the example: the jobs' context ends then.
package gocronlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Elector is for gocron.WithDistributedElector: all jobs of the scheduler run in the process
// that leads, for as long as [Elector.Run] runs in each of them.
//
// gocron asks before each run, and not while a job runs. The zero value is ready, leads nowhere
// before Run, and is safe for concurrent use; one Elector is for one Run.
type Elector struct {
	term atomic.Pointer[term] // the last one; nil: it never led
}

// term is a time of leadership. Its context ends with that.
type term struct {
	context.Context
	locker *core.Locker
	lock   *core.Lock
}

// isOver compares the clock, too: after a pause of the process the context may end a little later.
func (t *term) isOver() bool {
	return t.Err() != nil || !slices.ContainsFunc(t.locker.Snapshot(t.lock.Key()).Held, func(held core.HeldLock) bool {
		return held.Token == t.lock.Token() && held.TTL > 0
	})
}

// ErrNotLeader is why a job does not run.
var ErrNotLeader = errors.New("gocronlock: another process leads, or nobody does")

// Run campaigns for the lock of key and leads, in turn, until ctx ends. Its options and errors
// are those of [core.Locker.Lead]. Shut the scheduler down before ctx ends: its jobs are
// another's then.
func (e *Elector) Run(ctx context.Context, locker *core.Locker, key string, opts ...core.Option) error {
	return locker.Lead(ctx, key, func(ctx context.Context) error {
		lock, _ := core.FromContext(ctx)
		e.term.Store(&term{ctx, locker, lock})
		<-ctx.Done()
		return nil
	}, opts...)
}

// IsLeader returns nil in the process that leads, and ErrNotLeader elsewhere. It does not ask
// Redis: the lease, by the clock of this process, ends before that in Redis.
func (e *Elector) IsLeader(context.Context) error {
	if term := e.term.Load(); term == nil || term.isOver() {
		return ErrNotLeader
	}
	return nil
}

// NewLocker returns what gocron.WithDistributedLocker, or WithDistributedJobLocker, takes: a job
// runs in the process that comes first. window counts from the start of a run, and keeps the
// others from running it again when it was short, or their clocks and intervals begin at
// another time. It must be shorter than the interval of the job, and longer than these
// differ. gocron does not tell whether the job has failed: there is a window all the same.
//
// The key is the name of the job, as in "cron=report". Give it one, by gocron.WithName: gocron's own is that of
// the function. The lock is renewed while the job runs; to have the job's context end with it, lock in the job,
// with [core.Locker.Do], and leave gocron's locker out.
//
// A job that does not run, because it runs or has run elsewhere or Redis does not answer, is told to gocron.AfterLockError.
// NewLocker panics when the locker is nil, or the window or an option bad.
func NewLocker(locker *core.Locker, window time.Duration, opts ...core.Option) gocron.Locker {
	if locker == nil {
		panic("gocronlock: NewLocker needs a Locker")
	}
	opts = append(slices.Clone(opts), core.KeepFor(window))
	if err := adapter.Validate(opts...); err != nil {
		panic("gocronlock: bad option: " + strings.ReplaceAll(err.Error(), "core: ", ""))
	}
	return &jobLocker{locker, opts}
}

type jobLocker struct {
	locker *core.Locker
	opts   []core.Option
}

// Lock does not wait: whoever is in the way runs the job, or has run it.
func (l *jobLocker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lock, err := l.locker.TryLock(ctx, keyfunc.Key("cron", job), l.opts...)
	if err != nil {
		return nil, err // a nil *core.Lock would be no nil gocron.Lock
	}
	return lock, nil
}
