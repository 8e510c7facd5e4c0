package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/acquire"
	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/internal/limitedlog"
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
	l, err := newLocker(opts, defaultTimeout, lease.RenewalsPerLease)
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
	l := &Locker{defaults: *s, unwaiting: s.Settings, closed: make(chan struct{})}
	l.unwaiting.Wait = new(time.Duration)
	l.defaults.timeout = cmp.Or(s.timeout, min(timeout, s.Lease/ofLease))
	l.observers = observers{list: s.observers, backend: &l.acquirer.Backend}
	return l, nil
}

// start returns the Locker with its store: a quorum where there are several clients.
func (l *Locker) start(clients ...redis.UniversalClient) (*Locker, error) {
	s := &l.defaults
	s.Quorum = len(clients) > 1
	if s.Quorum && s.replicas.N > 0 {
		return nil, errors.New("core: NewQuorum takes no Replicas: its members vouch for one another")
	}
	if err := s.replicas.Check(clients[0], s.timeout); err != nil {
		return nil, err
	}
	servers := make([]*conn.Server, len(clients))
	for i, c := range clients {
		servers[i] = conn.New(c, conn.Config{
			Prefix: s.prefix, Timeout: s.timeout, Workers: &l.workers, Loaded: l.loaded,
			Forgot: func() { l.workers.Start(l.acquirer.Doubt) }, Replicas: s.replicas, ReplicaClock: l.replicaClock, IsMember: s.Quorum,
		})
	}
	process := newProcess(s.describe)
	l.self, _ = ProcessOf(process + ":1")
	l.acquirer.Start(acquire.Config{
		Backend: lease.Backend{Timeout: s.timeout, Log: &limitedlog.Log{
			Logger: l.logger,
			After: func(d time.Duration, write func()) {
				l.acquirer.Scheduler.Set(&lateLine{write: write}, schedule.Now().Add(d))
			},
			Put: func(write func()) bool { return l.lines.Put(write, maxLines) },
		}},
		Prefix: s.prefix, Process: process, Servers: servers, Sharded: s.sharded, Workers: &l.workers,
		Errors: errorsOf{}, Observers: &l.observers, Loaded: l.loaded, Disconnected: l.disconnected,
	})
	if slices.ContainsFunc(clients, waitsForEver) {
		l.acquirer.Warn(context.Background(),
			"a command that is never answered keeps its connection for good, for the Redis client has no ReadTimeout")
	}
	return l, nil
}

// waitsForEver says that a client waits for an answer as long as its connection lasts.
func waitsForEver(client redis.UniversalClient) bool {
	single, ok := client.(*redis.Client)
	return ok && (single.Options().ReadTimeout < 0 || single.Options().ReadTimeout == 0 && !single.Options().ContextTimeoutEnabled)
}

func isNil(client redis.UniversalClient) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
