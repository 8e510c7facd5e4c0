package core

import (
	"context"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Close ends the Locker. It refuses new locks and wakes waiting calls with
// [ErrClosed], then waits until every lock is unlocked and Redis, or the majority
// of a quorum, has confirmed it; meanwhile holders may re-enter what they hold.
// When ctx ends first, the contexts of the locks that
// are left are cancelled with [ErrClosed], the locks are released, and ctx's
// error is returned; that takes three times [Timeout] at most. Releases that are not
// confirmed then end with their leases, and are logged. Afterwards no
// goroutine of the Locker is left, apart from commands that go-redis does not
// interrupt: they end with its read timeout.
//
// A second call waits for the first, until its own ctx ends, and returns nil. A nil ctx
// does not end.
// The client of [Open] is closed, too; that of [New] is not.
func (l *Locker) Close(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if !l.admitNoMore() {
		select {
		case <-l.closed:
		case <-ctx.Done():
		}
		return nil
	}
	defer close(l.closed)

	var err error
	if !l.isDrained(ctx) {
		err = conn.Ended(ctx)
		l.evict()
		l.soon(l.isDrained) // calls under way get an answer, to be undone
	}
	// A dead member of a quorum must not hold up the end.
	if !l.store.Can.Differ && !l.isConfirmed(ctx) {
		err = conn.Ended(ctx)
	}
	if !l.soon(l.isConfirmed) {
		l.report.warn("closed before Redis confirmed all releases; these locks end with their leases")
	}
	l.scheduler.Stop()
	l.listener.Stop()
	// Closing the client under a command that hangs would hang as well.
	if !l.isIdle(ctx) {
		l.soon(l.isIdle)
	}
	if l.own != nil {
		_ = l.own.Close() // nobody needs it any more, whatever it says
	}
	return err
}

// soon waits by a context that lasts no longer than one request may take.
func (l *Locker) soon(wait func(ctx context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	return wait(ctx)
}

func (l *Locker) isDrained(ctx context.Context) bool { return isDone(ctx, l.underWay.None()) }

// isConfirmed waits until nothing is left to compensate. A command that was given up may still
// be written, and a member of a quorum may vote late: whether that has to be compensated is
// known when the goroutine ends that sends it.
func (l *Locker) isConfirmed(ctx context.Context) bool {
	return isDone(ctx, l.requests.Wait()) && isDone(ctx, l.unconfirmed.None())
}

func (l *Locker) isIdle(ctx context.Context) bool {
	return isDone(ctx, l.background.Wait()) && isDone(ctx, l.requests.Wait())
}

// isDone waits for done or for the end of ctx, and prefers done.
func isDone(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// evict ends all leases for Close: tells the holders, then releases.
func (l *Locker) evict() {
	for _, s := range l.leasesThat(func(*lease) bool { return true }) {
		_ = s.lose(closed("holding", s.name.Key()), func(*Lock) bool { return true })
	}
}
