package adapter

import (
	"context"

	"github.com/latchkey-go/latchkey/core"
)

// Do is [core.Locker.Do], and reports whether fn has run. If not, err says why there is no lock.
func Do(
	ctx context.Context, locker *core.Locker, key string, fn func(context.Context) error, opts ...core.Option,
) (ran bool, err error) {
	err = locker.Do(ctx, key, func(ctx context.Context) error {
		ran = true
		return fn(ctx)
	}, opts...)
	return ran, err
}

// DoAll is [core.Locker.DoAll], and reports whether fn has run. If not, err says why there are no locks.
func DoAll(
	ctx context.Context, locker *core.Locker, keys []string, fn func(context.Context) error, opts ...core.Option,
) (ran bool, err error) {
	err = locker.DoAll(ctx, keys, func(ctx context.Context) error {
		ran = true
		return fn(ctx)
	}, opts...)
	return ran, err
}
