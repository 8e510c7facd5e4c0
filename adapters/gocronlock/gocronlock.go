// Package gocronlock has jobs of gocron run in one of several processes: [Elector] in the one
// that leads, [NewLocker] in any of them, each run once.
//
// It is an example that is written with what latchkey exports. Copy it.
package gocronlock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Elector is for gocron.WithDistributedElector: all jobs of the scheduler run in the process
// that leads, for as long as [Elector.Run] runs in each of them.
//
// gocron asks before each run, and not while a job runs: one that is running when the lock is
// lost goes on. Have it take a lock of its own, or run the whole scheduler within
// [core.Locker.Lead], if it must not.
type Elector struct {
	term atomic.Pointer[context.Context] // ends with leadership; nil: it never led
}

// ErrNotLeader is why a job does not run.
var ErrNotLeader = errors.New("gocronlock: another process leads, or nobody does")

// Run campaigns for the lock of key and leads, in turn, until ctx ends. Its options and errors
// are those of [core.Locker.Lead]. Shut the scheduler down before ctx ends: its jobs are
// another's then.
func (e *Elector) Run(ctx context.Context, locker *core.Locker, key string, opts ...core.Option) error {
	return locker.Lead(ctx, key, func(ctx context.Context) error {
		e.term.Store(&ctx)
		<-ctx.Done()
		return nil
	}, opts...)
}

// IsLeader returns nil in the process that leads, and ErrNotLeader elsewhere. It does not ask
// Redis: the context ends before the lease does.
func (e *Elector) IsLeader(context.Context) error {
	if term := e.term.Load(); term == nil || (*term).Err() != nil {
		return ErrNotLeader
	}
	return nil
}

// NewLocker returns what gocron.WithDistributedLocker, or WithDistributedJobLocker, wants: a job
// runs in the process that comes first. window counts from the start of a run, and keeps the
// others from running it again when it was short, or their clocks and intervals begin at
// another time. It must be shorter than the interval of the job, and longer than these
// differ. gocron does not tell whether the job has failed: there is a window all the same.
//
// The key is the name of the job, which should have one: gocron.WithName. The lock is renewed
// while the job runs; to have the job's context end with it, lock in the job, with
// [core.Locker.Do], and leave gocron's locker out.
func NewLocker(locker *core.Locker, window time.Duration, opts ...core.Option) gocron.Locker {
	return &jobLocker{locker, append(opts[:len(opts):len(opts)], core.KeepFor(window))}
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
