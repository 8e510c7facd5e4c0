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

// Once runs fn for a key once, and all calls get the result: those that come while fn runs, in any process, wait for it, as
// [Wait] says, and those within [KeepFor] after it get it by one request to Redis. KeepFor is needed, here or in [New], and
// counts from when the result is stored. fn runs under the lock of key, as in [Locker.Do], with [Lock.Context].
//
// The result is stored as JSON, of 64 KiB at most; the call that has run fn returns it as it is. It is stored when fn returns
// without an error. Otherwise:
//
//   - When fn returns an error, panics or calls [runtime.Goexit], or [Lock.DropWindow] was called, nothing is kept, and the
//     next call runs fn again. So it is with a result that is too large, which Once returns with [ErrResultTooLarge], and
//     with one that cannot be read back from JSON.
//   - When the process dies, or the protection ends while fn runs, as [ErrLost], [ErrClosed] or [ErrMaxHold] says, nobody
//     knows what fn has done. For KeepFor the next call runs fn with an [AttemptOf] of more than 1, or, with
//     [RefuseUnknown], fails with [ErrOutcomeUnknown].
//
// When fn does not run, and there is no result, the error is that of [Locker.Lock]; it is [ErrDeadlock] where ctx holds the
// lock of key, such as inside of fn. A stored result that has another type, fields that T has not, or null where T cannot be
// nil, is an error as well. When storing the result fails, that is logged and repeated in the background; if it fails until
// the lease is over, the outcome is unknown.
//
// Options are those of Do, but [Shared], [Permits], [Weight] and [Owner]; [BackgroundRelease] has no effect. A Locker of
// [NewQuorum] is refused. Once panics when l or fn is nil.
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

// WrapOnce returns fn as [Once] runs it: each call derives a key from its input. When the key cannot be derived, fn does not
// run and the error of key is returned. The function returned is safe for concurrent use when key and fn are.
//
// WrapOnce panics when l, key or fn is nil, an option is bad, or there is no [KeepFor].
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

// AttemptOf returns the number of the attempt for which the function of [Once] runs under ctx: 1 for the first, and for one
// after a first that has failed. If it is more, the outcome of an earlier one is unknown: it may have done its work. It is
// also that of a request under the Idempotent of an HTTP adapter, and of the innermost, where ctx is under several. It is 0
// outside of both. It does not block.
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

// RefuseUnknown has [Once] and [WrapOnce] fail with [ErrOutcomeUnknown], and not run the function again, while the outcome of
// its last run is unknown. It is for work that must not be done twice and cannot find out whether it was done. It is refused
// elsewhere.
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
	case work == store.Done:
		a.lease.endsWith(a.result)
	default:
		work = store.Done // or not: nobody knows
	}
	return a.Lock.finish(ctx, work, false)
}

// encodeResult returns a result as it is stored. One that could not be read back is not.
func encodeResult[T any](result T) (string, error) {
	text, err := json.Marshal(result)
	if err == nil {
		_, err = decodeResult[T](string(text))
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("core: the result cannot be stored as JSON: %w", err)
	case len(text) > maxResult:
		return "", fmt.Errorf("%w: it has %d bytes of JSON, at most %d are stored", ErrResultTooLarge, len(text), maxResult)
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
		if own, _ := json.Marshal(result); string(own) != text {
			err = fmt.Errorf("it is null, which %T cannot be", none)
		}
	}
	if err != nil {
		return none, err
	}
	return result, nil
}
