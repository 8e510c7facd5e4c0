// Package adapter has what only authors of adapters need, on top of package core. An adapter
// makes middleware for a framework, which takes a lock for each request or task;
// docs/adapters.md says what it has to do.
package adapter

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

type settings = option.Settings

// inside is what core does for this package alone.
var inside = option.Inside.(interface {
	Option(set func(*settings)) core.Option
	Once() core.Option
	Settings(l *core.Locker, opts []core.Option) (*settings, error)
	Notify(ctx context.Context, l *core.Locker, e core.Event, opts []core.Option)
	LoggerOf(l *core.Locker) *slog.Logger
	LookUp(l *core.Locker, key string, then func(info core.Info, waiting int, asked bool))
	LocksOf(ctx context.Context) []*core.Lock
	HandOver(ctx context.Context, k *core.Lock, ticket string, ttl time.Duration, then func() error) error
	VoidTicket(k *core.Lock)
	AttemptOf(k *core.Lock) int
	Answer(ctx context.Context, k *core.Lock, answer string, keep time.Duration) error
})

// ContextKey is a second place where ownership is looked for, besides the context's own: the *core.Lock
// stored under this string key. Frameworks whose request object is a context that shows string keys
// only, as gin's does, store the lock there, so that locks taken under that object re-enter.
const ContextKey = option.ContextKey

// LoggerOf returns the [core.Logger] of a Locker, for the lines of an adapter: [slog.Default] where the Locker has
// none, or is nil. It does not block, and is safe for concurrent use.
func LoggerOf(locker *core.Locker) *slog.Logger { return inside.LoggerOf(locker) }

// LookUp is for the log of a call that was refused. It calls then, once, with the state of a lock and how
// many calls of this process wait for it. Redis is asked in the background, at most once in 0.9 s for all
// locks of the Locker, and for [core.Timeout] at most. Then the call has its turn among the lines of [core.Logger], and
// is left out where too many wait; [core.Locker.Close] waits for it as for these. If Redis is not asked, LookUp itself calls
// then. Where Redis is not asked, or does not answer, asked is false and info is empty. It does not block, and is safe for concurrent use.
func LookUp(locker *core.Locker, key string, then func(info core.Info, waiting int, asked bool)) {
	inside.LookUp(locker, key, then)
}

// LocksOf returns the locks that ctx holds, the innermost first, as [core.FromContext] and
// [core.FromContextKey] find them. It does not block.
func LocksOf(ctx context.Context) []*core.Lock { return inside.LocksOf(ctx) }

// Handover is [core.Lock.Handover] with a ticket that is known before, such as the id of a job. then
// starts what resumes the lock, and must return before ttl is over; when it fails, the lock is held as
// before, and its error is returned, joined with [core.ErrLost] if the lock is lost meanwhile.
// Everybody who can guess the ticket can take the lock.
func Handover(ctx context.Context, lock *core.Lock, ticket string, ttl time.Duration, then func() error) error {
	return inside.HandOver(ctx, lock, ticket, ttl, then)
}

// Notify notifies the Observers of a Locker of an event that only an adapter knows: [core.EventRefused],
// when it does not run a request or task. opts are those of the lock. Form is taken from opts, Name too
// if e has none, and Reason from Err if e has none. It blocks for as long as the Observers do. With a
// bad option it does nothing.
func Notify(ctx context.Context, locker *core.Locker, e core.Event, opts ...core.Option) {
	inside.Notify(ctx, locker, e, opts)
}

// Do is [core.Locker.Do], and reports whether fn has run. If not, err says why there is no lock.
func Do(
	ctx context.Context, locker *core.Locker, key string, fn func(context.Context) error, opts ...core.Option,
) (ran bool, err error) {
	err = locker.Do(ctx, key, noting(&ran, fn), opts...)
	return ran, err
}

// maxKeys is how many keys a request or task may have: others choose them.
const maxKeys = 64

// DoAll is [core.Locker.DoAll] for 64 keys at most, and reports whether fn has run. If not, err says why there are no locks.
func DoAll(
	ctx context.Context, locker *core.Locker, keys []string, fn func(context.Context) error, opts ...core.Option,
) (ran bool, err error) {
	if len(keys) > maxKeys {
		return false, fmt.Errorf("%w: %d keys, at most %d are allowed", core.ErrInvalidKey, len(keys), maxKeys)
	}
	err = locker.DoAll(ctx, keys, noting(&ran, fn), opts...)
	return ran, err
}

// noting notes that fn runs. Without a function there is none, so that core refuses it before a lock is taken.
func noting(ran *bool, fn func(context.Context) error) func(context.Context) error {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context) error {
		*ran = true
		return fn(ctx)
	}
}
