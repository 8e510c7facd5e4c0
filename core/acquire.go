package core

import (
	"context"

	"github.com/latchkey-go/latchkey/core/internal/option"
)

// Lock takes the lock of key, or enters it once more when ctx holds it already.
// It waits until the lock is free, ctx is done, or [Wait] is over. A call whose ctx holds
// another lock waits for a lease at most, unless Wait says otherwise. Waiting calls
// of one Locker are served in order, and so are the processes they wait in. The lock is
// renewed until it is unlocked, also after ctx was cancelled.
//
// Errors are a [*BusyError] or a [*LockError], apart from those of options and keys:
//
//   - [ErrNotAcquired]: somebody else holds the lock, then it is a [*BusyError]; or ctx ended
//     first, then it is the context's error as well.
//   - [ErrDeadlock], which is ErrNotAcquired as well, at once: ctx holds another lock, and the
//     wait would not end.
//   - [ErrNoPermit], which is ErrNotAcquired as well: a call with [Permits] got none.
//   - [ErrUpgrade], at once: ctx or the [Owner] has the lock in another form.
//   - [ErrUnavailable]: Redis did not answer within [Timeout], in which a call whose connection
//     breaks is sent again, or answered with an error. A call that was waiting already endures
//     this for 5 s. It fails sooner when its wait ends, or a deadline of ctx, while Redis has
//     failed for a second or more. A deadline that ends before that is [ErrNotAcquired], unless
//     Redis has not answered anybody for Timeout.
//   - [ErrOverloaded], which is ErrUnavailable as well: Redis is asked for more than it can do in time. It was not
//     asked for this call, which has waited for a quarter of Timeout.
//   - [ErrLost]: ctx held the lock and has lost it. [ErrMaxHold]: ctx has held it for too long.
//   - [ErrClosed], [ErrInvalidKey].
//
// Whatever the error, nothing stays locked: an outcome that is unknown is compensated in the
// background.
func (l *Locker) Lock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	given, err := l.settings(option.OfLock, opts)
	if err != nil {
		return nil, err
	}
	return l.lock(ctx, key, given)
}

// TryLock is [Locker.Lock] that never waits for a busy lock, nor takes one that has
// just become free for a process that waits. It blocks for one request to Redis, at
// most for [Timeout], unless a hook of the client's begins to block (see [New]); for as long again where
// this Locker is just giving up the lock that refuses it.
func (l *Locker) TryLock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	if len(opts) == 0 {
		return l.lock(ctx, key, &l.unwaiting)
	}
	given, err := l.settings(option.OfTryLock, append(opts[:len(opts):len(opts)], NoWait()))
	if err != nil {
		return nil, err
	}
	return l.lock(ctx, key, given)
}

func (l *Locker) lock(ctx context.Context, key string, given *option.Settings) (*Lock, error) {
	h, err := l.acquirer.LockObserved(ctx, key, given)
	return lockOf(h), err
}
