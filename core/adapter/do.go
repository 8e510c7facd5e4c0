package adapter

import (
	"context"

	"github.com/latchkey-go/latchkey/core"
)

// Do is [core.Locker.Do], and reports whether fn has run. If not, err says why there is no lock.
func Do(
	ctx context.Context, locker *core.Locker, key string, fn func(context.Context) error, opts ...core.Option,
) (ran bool, err error) {
	err = locker.Do(ctx, key, noting(&ran, fn), opts...)
	return ran, err
}

// DoAll is [core.Locker.DoAll], and reports whether fn has run. If not, err says why there are no locks.
func DoAll(
	ctx context.Context, locker *core.Locker, keys []string, fn func(context.Context) error, opts ...core.Option,
) (ran bool, err error) {
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
