package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const maxKeys = 64

// LockAll takes the locks of all keys, or none. A key that is given twice counts once. A key that
// ctx holds is entered once more.
//
// The call asks for all of them at once. While a key is busy, it holds none, and asks again after a few milliseconds. When it has done
// so for 0.3 s, it waits for the busy one as [Locker.Lock] does, and then asks for the others. After as many such waits as there are
// keys it keeps those that sort before the busy one, by the bytes of their names in Redis, for half as long as it has waited; then it
// waits on without them. So calls of LockAll do not wait for one another in a cycle, and no key stays taken for as long as another one
// is busy. [Wait], or the lease where ctx holds another lock, bounds the whole; after that it takes four times [Timeout] at most, where
// Redis is slow or its connections break. Each lock has a lease and a token of its own; [FixedLease], [MaxHold] and the window of
// [KeepFor] count from when it was taken.
//
// A busy lock that sorts before one that ctx holds is refused at once with [*BusyError]: by LockAll
// under any lock, and by Lock under locks of LockAll.
//
// Errors are those of [Locker.Lock], with the key that has failed; [ErrInvalidKey] also for no
// keys, and for more than 64; [ErrLost] and [ErrMaxHold] also when a lock that was taken has ended
// while the call waited for the others. Whatever the error, none of them stays locked.
func (l *Locker) LockAll(ctx context.Context, keys []string, opts ...Option) (*MultiLock, error) {
	s, err := l.settings(ofLock, opts)
	if err != nil {
		return nil, err
	}
	return l.lockAll(ctx, keys, s)
}

// DoAll is [Locker.Do] with the locks of several keys, as [Locker.LockAll] takes them. What fn
// gets is [MultiLock.Context].
func (l *Locker) DoAll(ctx context.Context, keys []string, fn func(ctx context.Context) error, opts ...Option) error {
	return l.runUnder(ctx, "DoAll", fn, opts, func(s *settings) (protection, error) { return l.lockAll(ctx, keys, s) })
}

// WrapAll is [Wrap] with several locks: each call derives its keys from its input, and runs fn as
// [Locker.DoAll] does.
func WrapAll[In, Out any](
	l *Locker, keys func(In) ([]string, error), fn func(context.Context, In) (Out, error), opts ...Option,
) func(context.Context, In) (Out, error) {
	return wrap("WrapAll", l, keys, l.DoAll, fn, opts)
}

func (l *Locker) lockAll(ctx context.Context, keys []string, s *settings) (*MultiLock, error) {
	if s.Attempt != nil {
		return nil, errors.New("core: LockAll: an attempt is under the lock of one key: use Lock")
	}
	base, cancel := context.WithCancelCause(ctx)
	a := &multiCall{locker: l, caller: ctx, base: base, settings: s, group: &group{cancel: cancel, began: time.Now()}}
	err := a.prepare(keys)
	if err == nil {
		err = a.takeAll()
	}
	if err != nil {
		a.giveBack(a.locks)
		isDone(ctx, a.givingBack.None())
		cancel(nil)
		return nil, err
	}
	return &MultiLock{locker: l, locks: a.locks, ctx: a.under(), cancel: cancel}, nil
}

// prepare makes a call for the lock of each key, in the order in which calls wait for them.
func (a *multiCall) prepare(keys []string) error {
	if len(keys) == 0 {
		return fmt.Errorf("%w: LockAll was given no keys", ErrInvalidKey)
	}
	if err := a.settings.checkKeys(len(keys)); err != nil {
		return err
	}
	all := make([]lockCall, len(keys))
	first := &all[0]
	*first = lockCall{engine: &a.locker.engine, group: a.group, want: want{ctx: a.base, settings: a.settings}}
	if first.inner() != nil {
		first.boundWait()
		a.settings, a.underLocks = first.settings, true
	}
	for i, key := range keys {
		n, err := a.locker.nameOf(key)
		if err != nil {
			return err
		}
		all[i] = lockCall{engine: first.engine, group: a.group, want: wanted(a.base, n, a.settings.ofKey(i))}
	}
	slices.SortFunc(all, func(x, y lockCall) int { return cmp.Compare(x.name.Lock(), y.name.Lock()) })
	a.calls = make([]*lockCall, 0, len(all))
	for i := range all {
		if c, before := &all[i], &all[max(i-1, 0)]; i == 0 || c.name != before.name {
			a.calls = append(a.calls, c)
		} else if c.form != before.form {
			return fmt.Errorf("core: PermitsEach: one key is there twice, with %d and with %d permits", before.form.Permits(), c.form.Permits())
		}
	}
	if a.keys = len(a.calls); a.keys > maxKeys {
		return fmt.Errorf("%w: LockAll was given %d keys, at most %d are allowed", ErrInvalidKey, a.keys, maxKeys)
	}
	a.locks = make([]*Lock, 0, a.keys)
	return nil
}
