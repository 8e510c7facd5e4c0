package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// maxResult is how many bytes of JSON a stored result may have.
const maxResult = 64 << 10

// Once runs fn for a key once, and all calls get the result: those that come while fn runs, in any process, wait for it, as [Wait]
// says, and those within [KeepFor] after it was stored get it by one request to Redis. KeepFor is needed, here or in [New]. fn runs
// under the lock of key, as in [Locker.Do]. Its result is returned as it is, and stored as JSON, without unexported fields and of
// 64 KiB at most. What becomes of it otherwise:
//
//   - An error of fn, a panic, [runtime.Goexit] and [Lock.DropWindow] keep nothing: the next call runs fn again, and those that
//     wait run it one after the other, for an error is its own caller's alone. So does a result that is too large, or that JSON
//     cannot give back, such as invalid UTF-8; Once returns it with an error, in the first case [ErrResultTooLarge].
//   - When the process dies, or the protection ends while fn runs, as [ErrLost], [ErrClosed] or [ErrMaxHold] says, nobody knows
//     what fn has done. For KeepFor the next call runs fn with an [AttemptOf] of more than 1, or, with [RefuseUnknown], fails
//     with [ErrOutcomeUnknown]. So it is when the result cannot be stored until the lease is over, which is logged.
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
	stored, err := l.once(ctx, key, opts, func(ctx context.Context) (text string, err error) {
		if result, err = fn(ctx); err == nil {
			text, err = encodeResult(result)
		}
		return text, err
	})
	if stored == nil {
		return result, err
	}
	if result, err = decodeResult[T](stored.Answer); err != nil {
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
	if _, err := l.settings(ofCall, opts); bad != nil || err != nil {
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
	k := innermost(ctx)
	for k != nil && k.lease.attempt == 0 {
		k = k.outer
	}
	if k == nil {
		return 0
	}
	return int(k.lease.attempt)
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
	s.Attempt = &store.Attempt{Request: onceDigest, Known: s.Window, Refuse: s.RefuseUnknown}
	s.Window, s.RefuseUnknown = 0, false
}}

// onceDigest is in Redis what the digest of a request is for others, all of which are longer.
const onceDigest = "6f6e6365"

// once runs fn, which says how its result is stored, or returns the result that is.
func (l *Locker) once(
	ctx context.Context, key string, opts []Option, fn func(context.Context) (string, error),
) (stored *store.Answered, err error) {
	s, err := l.settings(ofCall, append(slices.Clip(opts), asOnce))
	if err != nil {
		return nil, err
	}
	k, err := l.lockObserved(ctx, key, s)
	switch {
	case errors.As(err, &stored):
		return stored, nil
	case err != nil:
		return nil, err
	}
	if n := k.lease.attempt; n > 1 {
		l.report.warn(ctx, "a function of Once runs again, because the outcome of its last attempt is unknown", "key", key, "attempt", n)
	}
	a := &attempt{Lock: k}
	return nil, run(ctx, a, func(ctx context.Context) error {
		text, err := fn(ctx)
		if err == nil {
			a.result = &store.Answer{Text: text, Keep: s.Attempt.Known}
		}
		return err
	}, false)
}

// attempt is the lock of a call of Once.
type attempt struct {
	*Lock
	result *store.Answer // nil: there is none
}

// finish stores the result. When the protection has ended before fn has returned one, the outcome is unknown.
func (a *attempt) finish(ctx context.Context, work store.Work, _ bool) error {
	switch {
	case a.result == nil:
		return a.Abort(ctx)
	case work == store.Done:
		return inside{}.Answer(ctx, a.Lock, a.result.Text, a.result.Keep)
	default:
		return a.Unlock(ctx)
	}
}

// encodeResult returns a result as it is stored. One that could not be read back, or only as another one, is not.
func encodeResult[T any](result T) (string, error) {
	text, err := json.Marshal(&result) // as all of its methods have it
	if err == nil && len(text) > maxResult {
		return "", fmt.Errorf("%w: it has %d bytes of JSON, at most %d are stored", ErrResultTooLarge, len(text), maxResult)
	}
	if err == nil {
		var back T
		back, err = decodeResult[T](string(text))
		if again, _ := json.Marshal(&back); err == nil && string(again) != string(text) {
			err = errors.New("it would be read back as another one")
		}
	}
	if err != nil {
		return "", fmt.Errorf("core: the result cannot be stored as JSON: %w", err)
	}
	return string(text), nil
}

// decodeResult reads what encodeResult has returned, perhaps for another type.
func decodeResult[T any](text string) (T, error) {
	var result, none T
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&result)
	if err == nil && text == "null" {
		if own, _ := json.Marshal(&result); string(own) != text {
			err = fmt.Errorf("it is null, which %T cannot be", none)
		}
	}
	if err != nil {
		return none, err
	}
	return result, nil
}
