package core

import (
	"context"
	"errors"
	"slices"
	"time"
)

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
	a.taken = slices.Insert(a.taken, 0, a.entered...)
	if err != nil {
		a.giveBack(a.taken)
		isDone(ctx, a.givingBack.None())
		cancel(nil)
		return nil, err
	}
	return &MultiLock{locker: l, locks: a.taken, ctx: a.under(), cancel: cancel}, nil
}
