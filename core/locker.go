package core

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

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
