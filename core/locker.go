package core

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Locker takes locks in one Redis: a single server, Sentinel, a cluster or a ring. It is safe for
// concurrent use; a process needs one for each Redis. [Open] makes one with a client of its own,
// [New] one on a client that you have, [NewQuorum] one on several.
type Locker struct {
	engine
	own       redis.UniversalClient // that of Open; nil: it is the caller's
	defaults  settings
	unwaiting settings // of TryLock, without options
	self      Process
	closed    chan struct{} // when Close has ended
}

// disconnected is called when messages from Redis do not arrive. The rest of the error may differ each time.
func (l *Locker) disconnected(err error) {
	cause, _, _ := strings.Cut(err.Error(), " ")
	l.report.Rarely(context.Background(), slog.LevelWarn, "wake-ups are not heard; waiting calls poll", cause, "error", err)
	l.notify(context.Background(), Event{Kind: EventUnheard, Err: err})
}

// replicaClock is told how far the clock of a replica is ahead of its master's.
func (l *Locker) replicaClock(addr string, ahead, doubt time.Duration) {
	if allowed := l.defaults.Lease / 10; ahead.Abs()-doubt > allowed {
		l.report.warn(context.Background(), "a replica's clock differs from its master's; after a failover a lock may end as much too early",
			"replica", addr, "difference", ahead.Round(time.Millisecond), "allowed", allowed)
	}
}

// settings returns those of one call. They may be those of others as well.
func (l *Locker) settings(scope option.Scope, opts []Option) (*settings, error) {
	if len(opts) == 0 {
		return &l.defaults, nil
	}
	return l.defaults.with(scope, opts)
}

// Prefix returns what the names of the Locker's locks begin with in Redis: the option [Prefix].
func (l *Locker) Prefix() string { return l.defaults.prefix }

var defaultLocker atomic.Pointer[Locker]

// SetDefault makes l the Locker of middleware that was given none, as slog.SetDefault does for
// loggers. Middleware looks it up for every request, so the order of set-up does not matter. nil
// takes the default away. Safe for concurrent use.
func SetDefault(l *Locker) { defaultLocker.Store(l) }

// Default returns what [SetDefault] set last, or nil. This package never uses it by itself. Safe
// for concurrent use.
func Default() *Locker { return defaultLocker.Load() }

// nameOf returns what Redis calls the lock of a key.
func (l *Locker) nameOf(key string) (store.Name, error) {
	if key == "" {
		return store.Name{}, fmt.Errorf("%w: empty", ErrInvalidKey)
	}
	if len(key) > store.MaxKeyBytes {
		return store.Name{}, fmt.Errorf("%w: %d bytes, at most %d are allowed (keyfunc.Hash shortens it)",
			ErrInvalidKey, len(key), store.MaxKeyBytes)
	}
	return store.NewName(l.defaults.prefix, key), nil
}

// Close ends the Locker. It refuses new locks and wakes waiting calls with [ErrClosed], then waits
// until every lock is unlocked and Redis, or the majority of a quorum, has confirmed it; meanwhile
// holders may re-enter what they hold. When ctx ends first, the contexts of the locks that are left
// are cancelled with [ErrClosed], the locks are released, and ctx's error is returned; that takes
// [Timeout] at most. Releases that are not confirmed by then are logged, and these locks end with their
// leases. A [Lock.Handover] that is under way succeeds, or fails with ErrClosed.
//
// Afterwards no goroutine of the Locker is left, apart from commands that go-redis does not interrupt:
// they end with its read timeout. The client of [Open] is closed after the last of these; that of
// [New] is not. A second call waits for the first, until its own ctx ends, and returns nil. A nil ctx
// does not end.
func (l *Locker) Close(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if !l.stopAdmitting() {
		select {
		case <-l.closed:
		case <-ctx.Done():
		}
		return nil
	}
	defer close(l.closed)
	l.listener.Stop() // nobody waits any more

	// end comes Timeout after that of ctx.
	end, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(l.timeout, cancel) })()

	var err error
	if !isDone(ctx, l.underWay.None()) {
		err = conn.Ended(ctx)
		for _, s := range l.leasesThat(func(*lease) bool { return true }) {
			s.mu.Lock()
			_ = s.unlockAfter(s.life.Close())
		}
		isDone(end, l.underWay.None()) // calls under way get an answer, to be undone
	}
	if l.store.MinorityMayKeep() { // a dead member of a quorum must not hold up the end
		time.AfterFunc(l.timeout, cancel)
	} else if !l.isConfirmed(ctx) {
		err = conn.Ended(ctx)
	}
	if !l.isConfirmed(end) {
		l.report.warn(ctx, "closed before Redis confirmed all releases; these locks end with their leases")
	}
	l.scheduler.Stop()
	<-l.background.Wait() // which nothing blocks
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		for _, work := range []<-chan struct{}{l.underWay.None(), l.requests.Wait(), l.subscribers.Wait()} {
			<-work
		}
		if l.own != nil { // it would hang under a command that hangs
			_ = l.own.Close() // nobody needs it any more, whatever it says
		}
	}()
	isDone(end, idle)
	l.report.Close()
	return err
}

// isConfirmed waits until nothing is left to compensate. A command that was given up may still
// be written, and a member of a quorum may vote late: whether that has to be compensated is
// known when the goroutine ends that sends it.
func (l *Locker) isConfirmed(ctx context.Context) bool {
	return isDone(ctx, l.requests.Wait()) && isDone(ctx, l.unconfirmed.None())
}
