package core

import "context"

// Wrap returns fn guarded by a lock: each call derives a key from its input,
// holds the lock of that key while fn runs, and releases it as [Locker.Do] does.
// When the key cannot be derived, fn does not run and the error of key is
// returned; when the lock cannot be taken, that of [Locker.Lock]. What fn
// returns is passed on, with the additions of [Locker.Do] to its error. The
// function returned is safe for concurrent use when key and fn are.
//
// Wrap panics when l, key or fn is nil or an option is bad.
func Wrap[In, Out any](l *Locker, key func(In) (string, error), fn func(context.Context, In) (Out, error), opts ...Option) func(context.Context, In) (Out, error) {
	return wrap("Wrap", l, key, l.Do, fn, opts)
}

// WrapAll is [Wrap] with several locks: each call derives its keys from its input, and holds
// the locks of all of them while fn runs, as [Locker.DoAll] does.
func WrapAll[In, Out any](l *Locker, keys func(In) ([]string, error), fn func(context.Context, In) (Out, error), opts ...Option) func(context.Context, In) (Out, error) {
	return wrap("WrapAll", l, keys, l.DoAll, fn, opts)
}

func wrap[K, In, Out any](name string, l *Locker, key func(In) (K, error), do func(context.Context, K, func(context.Context) error, ...Option) error, fn func(context.Context, In) (Out, error), opts []Option) func(context.Context, In) (Out, error) {
	if l == nil || key == nil || fn == nil {
		panic("core: " + name + " needs a Locker, a key function and a function to guard; one of them is nil")
	}
	if err := validate(opts); err != nil {
		panic(err)
	}
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
