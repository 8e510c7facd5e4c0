package core

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/core/internal/option"
)

// LockAll takes the locks of all keys, or none. A key that is given twice counts once. A key that
// ctx holds is entered once more.
//
// The call asks for all of them at once. While a key is busy, it holds none, and asks again after a few milliseconds. When it has done so
// for 0.3 s, or sooner where calls of this process wait for a key, it waits for the busy one as [Locker.Lock] does, and then asks for the
// others. After as many such waits as there are keys it keeps those that sort before the busy one, by the bytes of their names in Redis,
// for half as long as it has waited; then it waits on without them. Of [PermitsEach] those with fewer permits sort first, so that no call
// keeps a permit of many that it cannot use before it has one of few. So calls of LockAll do not wait for one another in a cycle, or,
// where they give one key different permits, only until one gives back; and no key stays taken for as long as another one is busy. Of more
// than 64 keys it takes 64 at a time in this way, in that order, and keeps those that it has. [Wait], or the lease where ctx holds another
// lock, bounds the whole; after that it takes four times [Timeout] at most, where Redis is slow or its connections break. Each lock has a
// lease and a token of its own; [FixedLease], [MaxHold] and the window of [KeepFor] count from when it was taken. The contexts of the
// locks are nested, so values of ctx are found the more slowly, the more keys there are.
//
// A busy lock that sorts before one that ctx holds is refused at once with [*BusyError]: by LockAll
// under any lock, and by Lock under locks of LockAll.
//
// Errors are those of [Locker.Lock], with the key that has failed; [ErrInvalidKey] also for no
// keys; [ErrTooManyKeys] for more than 10,000; [ErrLost] and [ErrMaxHold] also when a lock that was taken has ended
// while the call waited for the others. Whatever the error, none of them stays locked.
func (l *Locker) LockAll(ctx context.Context, keys []string, opts ...Option) (*MultiLock, error) {
	s, err := l.settings(option.OfLock, opts)
	if err != nil {
		return nil, err
	}
	return l.lockAll(ctx, keys, s)
}

// DoAll is [Locker.Do] with the locks of several keys, as [Locker.LockAll] takes them. What fn
// gets is [MultiLock.Context].
func (l *Locker) DoAll(ctx context.Context, keys []string, fn func(ctx context.Context) error, opts ...Option) error {
	return l.doLocked(ctx, "DoAll", fn, opts, func(s *option.Settings) (protection, error) { return l.lockAll(ctx, keys, s) })
}

// WrapAll is [Wrap] with several locks: each call derives its keys from its input, and runs fn as
// [Locker.DoAll] does.
func WrapAll[In, Out any](
	l *Locker, keys func(In) ([]string, error), fn func(context.Context, In) (Out, error), opts ...Option,
) func(context.Context, In) (Out, error) {
	return wrap("WrapAll", l, keys, l.DoAll, fn, opts)
}

func (l *Locker) lockAll(ctx context.Context, keys []string, s *option.Settings) (*MultiLock, error) {
	if s.Attempt != nil {
		return nil, errors.New("core: LockAll: an attempt is under the lock of one key: use Lock")
	}
	locks, err := l.acquirer.LockAll(ctx, keys, s)
	if err != nil {
		return nil, err
	}
	return &MultiLock{locks}, nil
}
