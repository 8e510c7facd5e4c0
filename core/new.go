package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/notify"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

const (
	defaultPrefix  = "lock:"
	defaultLease   = 30 * time.Second
	defaultTimeout = 2 * time.Second
	quorumTimeout  = 500 * time.Millisecond // of each member
)

// New returns a Locker on client. It does no network I/O and starts no goroutine. It fails when the
// client is nil or an option is bad; all that is wrong is reported at once. The client stays yours:
// close the Locker first, then the client.
//
// With a [*redis.Client] a release runs on its caller's goroutine, and so does any other lone call
// while Redis has answered within the last 100 ms: that is faster. If Redis falls silent just then, a
// call that is cancelled ends within [Timeout], not at once; it keeps a deadline of its context. Not so
// with a Limiter, OnConnect or credentials from a function, which may block. A hook that blocks holds
// up the calls under way, but none after them. For all this a client without ContextTimeoutEnabled, which
// [Open] sets, is given a hook by the first calls. Yours see all that is sent, but for handshakes; one
// that is added later costs a goroutine a call. New warns of a client without a ReadTimeout.
func New(client redis.UniversalClient, opts ...Option) (*Locker, error) {
	if isNil(client) {
		return nil, errors.New("core: New needs a Redis client, got nil")
	}
	l, err := newLocker(opts, defaultTimeout, renewalsPerLease)
	if err != nil {
		return nil, err
	}
	return l.start(client)
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
	defaults := settings{Settings: option.Settings{Terms: store.Terms{Lease: defaultLease}}, prefix: defaultPrefix}
	s, err := defaults.with(option.OfLocker, opts)
	if err != nil {
		return nil, err
	}
	l := &Locker{defaults: *s, unwaiting: *s, closed: make(chan struct{})}
	l.unwaiting.Wait = new(time.Duration)
	l.timeout = cmp.Or(s.timeout, min(timeout, s.Lease/ofLease))
	l.started = schedule.Now()
	l.leases, l.closing = map[*lease]struct{}{}, make(chan struct{})
	l.report.Logger = func() *slog.Logger { return inside{}.LoggerOf(l) }
	l.observers = observers{list: s.observers, report: &l.report}
	return l, nil
}

// start returns the Locker with its store: a quorum where there are several clients.
func (l *Locker) start(clients ...redis.UniversalClient) (*Locker, error) {
	s := &l.defaults
	s.Quorum = len(clients) > 1
	if s.Quorum && s.replicas.N > 0 {
		return nil, errors.New("core: NewQuorum takes no Replicas: its members vouch for one another")
	}
	if err := s.replicas.Check(clients[0], l.timeout); err != nil {
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
			Prefix: s.prefix, Timeout: l.timeout, Workers: &l.requests, Replicas: s.replicas, ReplicaClock: l.replicaClock,
		})
	}
	process := newProcess(s.describe)
	l.self, _ = ProcessOf(process + ":1")
	config := store.Config{
		Process: process, Timeout: l.timeout, Sharded: s.sharded, Workers: &l.requests, Compensate: l.compensate,
	}
	if s.Quorum {
		l.store = store.NewQuorum(servers, config)
	} else {
		l.store = store.New(servers[0], config)
	}
	l.listener = notify.New(notify.Config{
		Servers: servers, Sharded: s.sharded, Process: store.ProcessChannel(process), Workers: &l.subscribers,
		Disconnected: l.disconnected,
		MayBeFree:    func(lock string) { l.queues.Signal(lock, 0) },
		Message:      l.message,
	})
	return l, nil
}

func isNil(client redis.UniversalClient) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// Prefix is what the names of all locks begin with in Redis; Lockers exclude one another only when they share it.
// Those on unrelated servers need different ones: what a context owns on one, it owns on the other. It ends with a
// colon and has no other, so that no lock has the name of one with another prefix; braces and control characters are
// refused. The default is "lock:". Option of [New] only.
func Prefix(p string) Option {
	if strings.ContainsAny(p, "{}") || strings.ContainsFunc(p, option.IsControl) || len(p) > store.MaxKeyBytes {
		return badOption("Prefix(%q): braces, control characters and more than %d bytes are not allowed", p, store.MaxKeyBytes)
	}
	if plain := strings.ReplaceAll(cmp.Or(strings.Trim(p, ":"), "lock"), ":", ".") + ":"; p != plain {
		return badOption("Prefix(%q): it must end with a colon and have no other, "+
			"or locks could have the names of another prefix's: write %q", p, plain)
	}
	return ofNew("Prefix", func(s *settings) { s.prefix = p })
}

// Timeout bounds one request to Redis; after it the outcome counts as unknown and is compensated in
// the background. A renewal never takes longer than a third of its lease. Option of [New] only. The
// default is 2 s or a third of the lease, whichever is less; 1 ms to a day.
func Timeout(d time.Duration) Option {
	return ofNew("Timeout", ofDuration("Timeout", d, longestLease, func(s *settings) { s.timeout = d }).set)
}

// Logger receives what no caller can be told: lost locks as errors, renewals and releases in trouble
// as warnings, with the context of the call that wanted the lock: its values, not its end. Each kind has
// at most one line a second, that nothing is heard of wake-ups one a minute. What comes meanwhile is told
// together, a second later or at the end of [Locker.Close]: omitted says how many there were beside the
// one, and omitted_keys has their keys, up to 8 KiB. A [Locker.ForceUnlock] is information. Middleware
// logs there, too, what becomes of its requests and tasks. The default is [slog.Default]. Option of [New] only.
func Logger(logger *slog.Logger) Option {
	if logger == nil {
		return badOption("Logger is nil")
	}
	return ofNew("Logger", func(s *settings) { s.logger = logger })
}

// Replicas makes a lock count only when n replicas have it
// (https://redis.io/docs/latest/commands/wait/), so that a failover to one of them keeps it.
// [Locker.Lock] returns when they have acknowledged it; when fewer have within timeout, it is given
// back and the error is [ErrUnavailable]. A renewal prolongs a lock only when they have
// acknowledged that too: while they are missing, held locks end with their leases ([ErrLost]). A
// release is not waited for; a failover may bring a lock back for the rest of its lease. Where n is
// less than all, a replica that lacks the lock may be promoted; where n is all, nothing can be
// locked while one is missing.
//
// A replica ends a lock by its own clock: the clocks of master and replicas must agree to well
// below a lease, or a failover may free a lock that is held. The first request by a [redis.Client],
// Sentinel's included, has them compared in the background, with INFO and TIME. A difference of
// more than a tenth of the lease is logged as a warning.
//
// n is at least 1; timeout is at least 1 ms in whole milliseconds, less than [Timeout] and less
// than the client's ReadTimeout. Option of [New] only, with a [redis.Client] or a
// [redis.ClusterClient]; [NewQuorum] refuses it, its members vouch for one another.
func Replicas(n int, timeout time.Duration) Option {
	if n < 1 || timeout < time.Millisecond {
		return badOption("Replicas(%d, %v): give at least 1 replica and at least 1ms", n, timeout)
	}
	return ofNew("Replicas", func(s *settings) {
		s.replicas = conn.Replicas{N: n, Within: timeout.Truncate(time.Millisecond)}
	})
}

// ShardedPubSub sends wake-ups by sharded pub/sub, of Redis 7
// (https://redis.io/docs/latest/develop/pubsub/#sharded-pubsub): in a cluster a release then costs
// the nodes of its shard something, and not all nodes. All who wait for the same locks must agree
// about it, or they wake one another by polling only; a Redisson client of a cluster does so with
// shardedSubscriptionMode AUTO or ON. Option of [New] and [NewQuorum] only.
func ShardedPubSub() Option {
	return ofNew("ShardedPubSub", func(s *settings) { s.sharded = true })
}
