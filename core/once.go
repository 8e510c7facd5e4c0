package core

import (
	"context"
	"errors"
	"slices"

	"github.com/latchkey-go/latchkey/core/internal/acquire"
	"github.com/latchkey-go/latchkey/core/internal/asjson"
	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Once runs fn for a key once, and all calls get the result: those that come while fn runs, in any process, wait for it, as [Wait]
// says, and those within [KeepFor] after it was stored get it by one request to Redis. KeepFor is needed, here or in [New]. fn runs
// under the lock of key, as in [Locker.Do]. Its result is returned as it is, and stored as JSON, without unexported fields and of
// 64 KiB at most. What becomes of it otherwise:
//
//   - An error of fn keeps nothing: the next call runs fn again. Calls of the same Locker that have waited while fn ran get the same
//     error, unless ctx, that of the call which has run fn, has ended. Those of other processes run it themselves.
//   - A panic, [runtime.Goexit] and [Lock.DropWindow] keep nothing, and calls that wait run fn one after the other. So it is with a
//     result that is too large, or that JSON would give back as another one, such as an int or a struct in an interface, what has
//     the tag json:"-", or invalid UTF-8; Once returns it with an error, in the first case [ErrResultTooLarge].
//   - When the process dies, the protection ends while fn runs, as [ErrLost], [ErrClosed] or [ErrMaxHold] says, or fn says so by an
//     error that is [ErrOutcomeUnknown], nobody knows what fn has done. For KeepFor, unless the key is deleted in Redis, the next
//     call runs fn with an [AttemptOf] of more than 1, or, with [RefuseUnknown], fails with ErrOutcomeUnknown. So it is when the
//     result cannot be stored until the lease is over, which is logged.
//
// When fn does not run, and there is no result, the error is that of [Locker.Lock]; it is [ErrDeadlock] where ctx holds the lock of key,
// as inside of fn. A stored result of another type, with fields that T has not, or null where T cannot be nil, is an error as well.
//
// Options are those of Do, but [Shared], [Permits], [Weight] and [Owner]; [BackgroundRelease] has no effect. A Locker of [NewQuorum] is
// refused. Once panics when l or fn is nil.
func Once[T any](
	ctx context.Context, l *Locker, key string, fn func(ctx context.Context) (T, error), opts ...Option,
) (result T, err error) {
	if l == nil || fn == nil {
		panic("core: Once needs a Locker and a function to run; one of them is nil")
	}
	stored, err := l.once(ctx, key, opts, func(locked context.Context) (text string, own, err error) {
		if result, err = fn(locked); err != nil {
			return "", err, err
		}
		text, err = asjson.Encode(result, ErrResultTooLarge)
		return text, nil, err
	})
	if stored == nil {
		return result, err
	}
	if result, err = asjson.Read[T](ctx, stored.Answer); err != nil {
		err = &LockError{Key: key, text: "the result that is stored under the lock cannot be read as the type that is wanted", cause: err}
	}
	return result, err
}

// WrapOnce returns fn as [Once] runs it: each call derives a key from its input, or returns the error of key. The function returned is safe
// for concurrent use when key and fn are. WrapOnce panics when l, key or fn is nil, an option is bad, or there is no [KeepFor].
func WrapOnce[In, Out any](
	l *Locker, key func(In) (string, error), fn func(context.Context, In) (Out, error), opts ...Option,
) func(context.Context, In) (Out, error) {
	if l == nil || key == nil || fn == nil {
		panic("core: WrapOnce needs a Locker, a key function and a function to run; one of them is nil")
	}
	opts = append(slices.Clip(opts), asOnce)
	_, bad := new(settings).with(option.OfMiddleware, opts)
	if _, err := l.settings(option.OfCall, opts); bad != nil || err != nil {
		panic(errors.Join(bad, err))
	}
	return func(ctx context.Context, in In) (out Out, err error) {
		k, err := key(in)
		if err != nil {
			return out, err
		}
		return Once(ctx, l, k, func(ctx context.Context) (Out, error) { return fn(ctx, in) }, opts...)
	}
}

// AttemptOf returns the number of the attempt for which the function of [Once] runs under ctx: 1 for the first, and for one after a first
// that has failed. If it is more, the outcome of an earlier one is unknown. It is that of the innermost, and of a request under an HTTP
// adapter's Idempotent as well. It is 0 outside of both. It does not block.
func AttemptOf(ctx context.Context) int {
	h := lease.Find(ctx, func(h *lease.Handle) bool { return h.Acquired().Attempt > 0 })
	if h == nil {
		return 0
	}
	return int(h.Acquired().Attempt)
}

// RefuseUnknown has [Once] and [WrapOnce] fail with [ErrOutcomeUnknown], and not run the function again, while the outcome of its last run
// is unknown: for work that must not be done twice, and cannot find out whether it was done. Other calls refuse it.
func RefuseUnknown() Option { return Option{set: func(s *settings) { s.RefuseUnknown = true }} }

// asOnce makes a call one of Once, from the options before it. Given again it has no effect.
var asOnce = Option{set: func(s *settings) {
	switch {
	case s.Attempt != nil:
		return
	case s.Window == 0 && s.Scope != option.OfMiddleware: // which may not know the Locker yet
		s.Fail("Once needs KeepFor: say for how long calls get the result, here or in New")
	}
	s.Attempt = &store.Attempt{Request: acquire.OnceDigest, Known: s.Window, Refuse: s.RefuseUnknown}
	s.Window, s.RefuseUnknown = 0, false
}}

// once runs fn, which says how its result is stored, and of an error whether it is its own, or returns the result that is.
func (l *Locker) once(
	ctx context.Context, key string, opts []Option, fn func(context.Context) (text string, own, err error),
) (stored *store.Answered, err error) {
	s, err := l.settings(option.OfCall, append(slices.Clip(opts), asOnce))
	if err != nil {
		return nil, err
	}
	k, err := l.lock(ctx, key, s)
	var failed acquire.FailedRun
	switch {
	case errors.As(err, &stored):
		return stored, nil
	case errors.As(err, &failed):
		return nil, failed.Cause
	case err != nil:
		return nil, err
	}
	if n := k.handle.Acquired().Attempt; n > 1 {
		l.acquirer.Warn(ctx, "a function of Once runs again, because the outcome of its last attempt is unknown", "key", key, "attempt", n)
	}
	a := &onceLock{Lock: k}
	return nil, l.run(ctx, a, func(locked context.Context) error {
		text, own, err := fn(locked)
		a.unknown = errors.Is(err, ErrOutcomeUnknown)
		switch {
		case err == nil:
			a.result = &store.Answer{Text: text, Keep: s.Attempt.Known}
		case own != nil && ctx.Err() == nil && k.usable() == nil:
			l.acquirer.FailWaiting(k.handle.Acquired().Name, own)
		}
		return err
	}, option.AwaitedRelease)
}

// onceLock is that of a call of Once.
type onceLock struct {
	*Lock
	result  *store.Answer // nil: there is none
	unknown bool          // fn does not know what it has done
}

// finish stores the result. When there is none the outcome is unknown if fn has said so, or the protection has ended.
func (a *onceLock) finish(ctx context.Context, work store.Work, _ option.ReleaseMode) error {
	switch {
	case a.result != nil && work == store.Done:
		return a.handle.Answer(ctx, *a.result)
	case a.result != nil || a.unknown || a.usable() != nil:
		return a.Unlock(ctx)
	default:
		return a.Abort(ctx)
	}
}
