package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/notify"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
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

// New returns a Locker on client. It does no network I/O and starts no goroutine. It fails when the
// client is nil or an option is bad; all that is wrong is reported at once. The client stays yours:
// close the Locker first, then the client.
//
// With the client's option ContextTimeoutEnabled, which [Open] sets, a release runs on its caller's
// goroutine, and so does any other lone call while Redis has answered within the last 100 ms: that is
// faster. If Redis falls silent just then, a call that is cancelled ends within [Timeout], not at
// once; it keeps a deadline of its context. Not so with a Limiter, OnConnect or credentials from a
// function, which may block. A hook that blocks holds up the calls under way, but none after them.
// New logs at Info that a [*redis.Client] lacks the option, and warns of one without a ReadTimeout.
func New(client redis.UniversalClient, opts ...Option) (*Locker, error) {
	if isNil(client) {
		return nil, errors.New("core: New needs a Redis client, got nil")
	}
	l, err := newLocker(opts, defaultTimeout, renewalsPerLease)
	if err == nil {
		l, err = l.start(client)
	}
	if c, ok := client.(*redis.Client); ok && err == nil && !c.Options().ContextTimeoutEnabled {
		l.report.info(context.Background(),
			"locking and unlocking costs a goroutine each, for the Redis client has no ContextTimeoutEnabled; core.Open sets it")
	}
	return l, err
}

// NewQuorum returns a Locker on several independent Redis masters. A lock is held when a majority of
// them has granted it. The algorithm is Redlock
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/) with renewal, wake-ups
// and a fencing token that is the same for all members. docs/guarantees.md says what that promises
// and what not: the members must not be replicas of one another, and one that loses its data must
// stay away for a lease.
//
// It takes an odd number of clients, three or more, none of them twice, and otherwise does as [New].
// The default [Timeout] for each member is 500 ms or a tenth of the lease, whichever is less. No
// majority reachable is [ErrUnavailable]; a majority reachable, but the lock held, is
// [ErrNotAcquired].
func NewQuorum(clients []redis.UniversalClient, opts ...Option) (*Locker, error) {
	if len(clients) < 3 || len(clients)%2 == 0 {
		return nil, fmt.Errorf("core: NewQuorum needs an odd number of clients, at least 3, got %d", len(clients))
	}
	for i, c := range clients {
		if isNil(c) {
			return nil, fmt.Errorf("core: NewQuorum: client %d is nil", i)
		}
		if slices.ContainsFunc(clients[:i], func(other redis.UniversalClient) bool { return conn.Same(c, other) }) {
			return nil, fmt.Errorf("core: NewQuorum: client %d is there twice, and would have two votes", i)
		}
	}
	l, err := newLocker(opts, quorumTimeout, 10)
	if err != nil {
		return nil, err
	}
	return l.start(clients...)
}

// newLocker returns a Locker that lacks its store. By default its Timeout is at most that long, and
// a part of the lease.
func newLocker(opts []Option, timeout, ofLease time.Duration) (*Locker, error) {
	defaults := settings{Settings: option.Settings{Terms: store.Terms{Lease: defaultLease}}, Prefix: defaultPrefix}
	s, err := defaults.with(option.OfLocker, opts)
	if err != nil {
		return nil, err
	}
	l := &Locker{defaults: *s, unwaiting: *s, closed: make(chan struct{})}
	NoWait().set(&l.unwaiting)
	l.timeout = cmp.Or(s.Timeout, min(timeout, s.Lease/ofLease))
	l.started = schedule.Now()
	l.leases, l.closing = map[*lease]struct{}{}, make(chan struct{})
	l.report.Logger = func() *slog.Logger { return inside{}.LoggerOf(l) }
	l.observers = s.Observers
	return l, nil
}

// start returns the Locker with its store: a quorum where there are several clients.
func (l *Locker) start(clients ...redis.UniversalClient) (*Locker, error) {
	s := &l.defaults
	s.Quorum = len(clients) > 1
	if s.Quorum && s.Replicas.N > 0 {
		return nil, errors.New("core: NewQuorum takes no Replicas: its members vouch for one another")
	}
	if err := s.Replicas.Check(clients[0], l.timeout); err != nil {
		return nil, err
	}
	l.scheduler = schedule.New(&l.background, func() { l.store.Flush() })
	l.report.After = l.writeLater
	servers := make([]*conn.Server, len(clients))
	for i, c := range clients {
		if c, ok := c.(*redis.Client); ok && (c.Options().ReadTimeout < 0 || c.Options().ReadTimeout == 0 && !c.Options().ContextTimeoutEnabled) {
			l.report.warn(context.Background(),
				"a command that is never answered keeps its connection for good, for the Redis client has no ReadTimeout")
		}
		servers[i] = conn.New(c, conn.Config{
			Prefix: s.Prefix, Timeout: l.timeout, Workers: &l.requests, Replicas: s.Replicas, ReplicaClock: l.replicaClock,
		})
	}
	process := newProcess(s.Describe)
	l.self, _ = ProcessOf(process + ":1")
	config := store.Config{
		Process: process, Timeout: l.timeout, Sharded: s.Sharded, Workers: &l.requests, Compensate: l.compensate,
	}
	if s.Quorum {
		l.store = store.NewQuorum(servers, config)
	} else {
		l.store = store.New(servers[0], config)
	}
	l.listener = notify.New(notify.Config{
		Servers: servers, Sharded: s.Sharded, Process: store.ProcessChannel(process), Workers: &l.subscribers,
		Disconnected: l.disconnected,
		MayBeFree:    func(lock string) { l.queues.Signal(lock, 0) },
		Message:      l.message,
	})
	return l, nil
}

// disconnected is called when messages from Redis do not arrive.
func (l *Locker) disconnected(err error) {
	l.report.warn(context.Background(), "wake-ups are not heard; waiting calls poll", "error", err)
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
func (l *Locker) Prefix() string { return l.defaults.Prefix }

func isNil(client redis.UniversalClient) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

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
	return store.NewName(l.defaults.Prefix, key), nil
}
