package core

import (
	"context"
	"errors"
	"slices"

	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Do runs fn while it holds the lock of key, and releases the lock when fn returns, panics or calls
// [runtime.Goexit]; a panic goes on unchanged. fn gets [Lock.Context]: locks taken with it re-enter,
// and it is cancelled when the protection ends.
//
// When the lock cannot be taken fn does not run and the error is that of [Locker.Lock]. Otherwise the
// result is fn's error. When the protection ended while fn ran it is joined with [ErrLost],
// [ErrMaxHold] or [ErrClosed], also when fn returned nil: somebody else may have been at work
// meanwhile. A release that fails after fn is logged and repeated in the background. Do panics at once when fn is nil.
func (l *Locker) Do(ctx context.Context, key string, fn func(ctx context.Context) error, opts ...Option) error {
	return l.doLocked(ctx, "Do", fn, opts, func(s *option.Settings) (protection, error) { return l.lock(ctx, key, s) })
}

// doLocked is Do, or DoAll, as name says, with what lock takes.
func (l *Locker) doLocked(
	ctx context.Context, name string, fn func(context.Context) error, opts []Option, lock func(*option.Settings) (protection, error),
) error {
	need(name, fn)
	s, err := l.settings(option.OfCall, opts)
	if err != nil {
		return err
	}
	h, err := lock(s)
	if err != nil {
		return err
	}
	return l.run(ctx, h, fn, s.WrapperRelease())
}

// need panics without a function to run, before a lock is taken for it.
func need(name string, fn func(context.Context) error) {
	if fn == nil {
		panic("core: " + name + " needs a function to run, and it is nil")
	}
}

type protection interface {
	Context() context.Context
	usable() error
	finish(ctx context.Context, work store.Work, mode option.ReleaseMode) error
	keys() []string
}

// run runs fn while it holds what the caller has taken, and releases that.
func (l *Locker) run(ctx context.Context, h protection, fn func(ctx context.Context) error, mode option.ReleaseMode) error {
	returned := false
	defer func() {
		if !returned { // a panic or Goexit
			l.reportRelease(h, h.finish(ctx, store.Failed, mode))
		}
	}()
	err := fn(h.Context())
	returned = true

	ended := h.usable()
	work := store.Done
	if err != nil || ended != nil { // the caller gets an error either way
		work = store.Failed
	}
	if failure := h.finish(ctx, work, mode); failure != nil && ended == nil {
		if errors.Is(failure, ErrLost) || errors.Is(failure, ErrClosed) {
			ended = failure
		} else {
			l.reportRelease(h, failure)
		}
	}
	if ended != nil {
		return errors.Join(err, ended)
	}
	return err
}

func (l *Locker) reportRelease(h protection, err error) {
	if err != nil && !errors.Is(err, ErrNotHeld) { // the function that it was for may have unlocked by itself
		l.acquirer.ReportRelease(h.Context(), err, h.keys()...)
	}
}

// Wrap returns fn guarded by a lock: each call derives a key from its input, and runs fn under the lock
// of that key, as [Locker.Do] does. When the key cannot be derived, fn does not run and the error of
// key is returned. Otherwise it returns fn's result and the error of Do. The function returned is safe
// for concurrent use when key and fn are.
//
// Wrap panics when l, key or fn is nil or an option is bad.
func Wrap[In, Out any](
	l *Locker, key func(In) (string, error), fn func(context.Context, In) (Out, error), opts ...Option,
) func(context.Context, In) (Out, error) {
	return wrap("Wrap", l, key, l.Do, fn, opts)
}

// wrap is Wrap, or WrapAll, as name and do say. K is a key, or several.
func wrap[K, In, Out any](
	name string, l *Locker, key func(In) (K, error),
	do func(ctx context.Context, key K, fn func(context.Context) error, opts ...Option) error,
	fn func(context.Context, In) (Out, error), opts []Option,
) func(context.Context, In) (Out, error) {
	if l == nil || key == nil || fn == nil {
		panic("core: " + name + " needs a Locker, a key function and a function to guard; one of them is nil")
	}
	if _, err := new(settings).with(option.OfMiddleware, opts); err != nil {
		panic(err)
	}
	opts = slices.Clone(opts)
	return func(ctx context.Context, in In) (out Out, err error) {
		k, err := key(in)
		if err != nil {
			return out, err
		}
		err = do(ctx, k, func(ctx context.Context) (err error) {
			out, err = fn(ctx, in)
			return err
		}, opts...)
		return out, err
	}
}

// BackgroundRelease has wrappers return without waiting for the release of the lock, a round trip to
// Redis earlier. Wrappers are [Locker.Do], [Locker.DoAll], [Wrap], [WrapAll] and middleware.
// [Lock.Unlock], [Lock.Abort] and [Locker.Lead] wait nevertheless. When the wrapper returns,
// [Lock.Context] is done, a loss that is known by then is returned, and the release is under way. It
// is repeated as that of Lock.Unlock is, and [Locker.Close] waits for it. What changes:
//
//   - The lock is not free yet. The next call of this Locker takes it over before the release is sent, or
//     waits for the release, as for any other; so does one that does not wait, such as [Locker.TryLock].
//     In another process that one may be refused.
//   - A loss that only the release tells comes as [EventLost] and in the log, not as [ErrLost]. A call that
//     has taken the lock over learns of it with its next renewal.
//     [EventReleased] may come after the wrapper has returned, and the hooks of the Redis client do
//     not see the values of its context.
//   - A process that ends without Locker.Close may leave a lock whose work is done, until the lease
//     ends. Close the Locker after the server's Shutdown.
//
// Calls that leave the release to their caller, such as Locker.Lock, refuse it. It has no effect with
// [NoWait], or a client's next request might be refused because of its last one; with [KeepFor], whose
// window must be there before a client learns that the work is done; and for a lock of which others may
// have a hold, by [Owner], [Lock.ShareOwner], a context that holds it, or the ticket of [Lock.Handover].
func BackgroundRelease() Option {
	return Option{set: func(s *settings) {
		if s.Scope >= option.OfLock {
			s.Fail("BackgroundRelease is for New, Do, Wrap and middleware, which release the lock: Unlock waits")
		}
		s.Release = option.BackgroundRelease
	}}
}
