package core

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/acquire"
	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// Locker takes locks in one Redis: a single server, Sentinel, a cluster or a ring. It is safe for
// concurrent use; a process needs one for each Redis. [Open] makes one with a client of its own,
// [New] one on a client that you have, [NewQuorum] one on several.
type Locker struct {
	acquirer  acquire.Acquirer
	observers observers
	workers   schedule.Workers      // what Redis is asked, and what is told of its load
	lookedUp  atomic.Int64          // a schedule.Time: when a lock was looked up for the log
	own       redis.UniversalClient // that of Open; nil: it is the caller's
	defaults  settings
	unwaiting option.Settings // of TryLock, without options
	self      Process
	closed    chan struct{}  // when Close has ended
	lines     schedule.Queue // for the log handler
}

// disconnected is called when messages from Redis do not arrive. The rest of the error may differ each time.
func (l *Locker) disconnected(err error) {
	cause, _, _ := strings.Cut(err.Error(), " ")
	l.acquirer.Log.Rarely(context.Background(), slog.LevelWarn, "wake-ups are not heard; waiting calls poll", cause, "error", err)
	l.observers.notify(context.Background(), Event{Kind: EventUnheard, Err: err})
}

// replicaClock is told how far the clock of a replica is ahead of its master's.
func (l *Locker) replicaClock(addr string, ahead, doubt time.Duration) {
	if allowed := l.defaults.Lease / 10; ahead.Abs()-doubt > allowed {
		l.acquirer.Warn(context.Background(), "a replica's clock differs from its master's; after a failover a lock may end as much too early",
			"replica", addr, "difference", ahead.Round(time.Millisecond), "allowed", allowed)
	}
}

// loaded is told how much a server has to do. It does not block.
func (l *Locker) loaded(load conn.Load) {
	if l.observers.list == nil && load.For == 0 && !load.Overloaded {
		return
	}
	ctx := context.Background()
	args := []any{"server", load.Server, "window", load.Window, "answer", load.Answer.Round(time.Millisecond), "waiting", load.Waiting}
	switch {
	case load.Overloaded && load.For == 0:
		l.acquirer.Warn(ctx, "redis is asked for more than it can do; calls are refused", args...)
	case !load.Overloaded && load.For > 0:
		l.acquirer.Warn(ctx, "redis keeps up again", append(args, "after", load.For.Round(time.Millisecond))...)
	}
	l.observers.notify(ctx, Event{Kind: EventLoad, Load: &Load{
		Server: load.Server, Window: load.Window, Answer: load.Answer, Waiting: load.Waiting, Shed: load.Shed, Overloaded: load.Overloaded,
	}})
}

// logger is who gets the lines of a Locker, of none as well.
func (l *Locker) logger() *slog.Logger {
	if l == nil || l.defaults.logger == nil {
		return slog.Default()
	}
	return l.defaults.logger
}

// maxLines bounds the lines that wait for a log handler.
const maxLines = 256

// lateLine is what was left out of the log, until it is due.
type lateLine struct {
	schedule.Timer
	write func()
}

func (l *lateLine) Due(schedule.Time) { l.write() }

// settings returns those of one call. They may be those of others as well.
func (l *Locker) settings(scope option.Scope, opts []Option) (*option.Settings, error) {
	if len(opts) == 0 {
		return &l.defaults.Settings, nil
	}
	s, err := l.defaults.with(scope, opts)
	return &s.Settings, err
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

// Close ends the Locker. It refuses new locks and wakes waiting calls with [ErrClosed], then waits
// until every lock is unlocked and Redis, or the majority of a quorum, has confirmed it; meanwhile
// holders may re-enter what they hold. When ctx ends first, the contexts of the locks that are left
// are cancelled with [ErrClosed], the locks are released, and ctx's error is returned; that takes
// [Timeout] at most. Releases that are not confirmed by then are logged, and these locks end with their
// leases. A [Lock.Handover] that is under way succeeds, or fails with ErrClosed.
//
// Afterwards no goroutine of the Locker is left, apart from those of a log handler or [Observer] that blocks,
// which are waited for until [Timeout] is over, and commands that go-redis does not interrupt:
// they end with its read timeout. The client of [Open] is closed after the last of these; that of
// [New] is not. A second call waits for the first, until its own ctx ends, and returns nil. A nil ctx
// does not end.
func (l *Locker) Close(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if !l.acquirer.StopAdmitting() {
		select {
		case <-l.closed:
		case <-ctx.Done():
		}
		return nil
	}
	defer close(l.closed)

	// end comes Timeout after that of ctx.
	end, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(l.acquirer.Timeout, cancel) })()
	err := l.acquirer.Drain(ctx, end, cancel)
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		l.acquirer.WaitUntilIdle()
		if l.own != nil { // it would hang under a command that hangs
			_ = l.own.Close() // nobody needs it any more, whatever it says
		}
	}()
	schedule.Await(end, idle)
	told, heard := context.WithTimeout(end, l.acquirer.Timeout)
	defer heard()
	schedule.Await(told, l.observers.later.Empty())
	schedule.Await(told, l.observers.loads.Empty())
	l.acquirer.Log.Close()
	schedule.Await(told, l.lines.Empty())
	return err
}
