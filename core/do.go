package core

import (
	"context"
	"errors"
)

// Do runs fn while it holds the lock of key, and releases the lock when fn
// returns, panics or calls [runtime.Goexit]. fn gets [Lock.Context]: locks taken
// with it re-enter, and it is cancelled when the protection ends.
//
// When the lock cannot be taken fn does not run and the error is that of
// [Locker.Lock]. Otherwise the result is fn's error. When the protection ended
// while fn ran it is joined with [ErrLost], [ErrMaxHold] or [ErrClosed], also
// when fn returned nil: somebody else may have been at work meanwhile. A release
// that fails after fn is logged and repeated in the background. A panic goes on
// unchanged.
func (l *Locker) Do(ctx context.Context, key string, fn func(ctx context.Context) error, opts ...Option) error {
	s, err := l.settings(opts)
	if err != nil {
		return err
	}
	k, err := l.obtain(ctx, key, s)
	if err != nil {
		return err
	}
	return run(ctx, k, fn, s.ReleasesLater())
}

// DoAll is [Locker.Do] with the locks of several keys, as [Locker.LockAll] takes them. What fn
// gets is [MultiLock.Context].
func (l *Locker) DoAll(ctx context.Context, keys []string, fn func(ctx context.Context) error, opts ...Option) error {
	s, err := l.settings(opts)
	if err != nil {
		return err
	}
	m, err := l.lockAll(ctx, keys, s)
	if err != nil {
		return err
	}
	return run(ctx, m, fn, s.ReleasesLater())
}

// holding is a lock, or several.
type holding interface {
	Context() context.Context
	usable() error
	finish(ctx context.Context, failed, later bool) error
	reportFailure(err error)
}

// run runs fn while it holds what the caller has taken, and releases that, also in the
// background with later.
func run(ctx context.Context, h holding, fn func(ctx context.Context) error, later bool) error {
	returned := false
	defer func() {
		if !returned { // a panic or Goexit
			h.reportFailure(h.finish(ctx, true, later))
		}
	}()
	err := fn(h.Context())
	returned = true

	ended := h.usable()
	failed := err != nil || ended != nil // the caller hears of a failure either way
	if failure := h.finish(ctx, failed, later); failure != nil && ended == nil {
		if errors.Is(failure, ErrLost) || errors.Is(failure, ErrClosed) {
			ended = failure
		} else {
			h.reportFailure(failure)
		}
	}
	if ended != nil {
		return errors.Join(err, ended)
	}
	return err
}
