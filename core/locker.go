package core

import (
	"cmp"
	"errors"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// Locker takes locks in one Redis: a single server, Sentinel, a cluster or a
// ring. It is safe for concurrent use; a process needs one for each Redis. Close
// it before the client.
type Locker struct {
	backend  backend
	prefix   string
	timeout  time.Duration // of one exchange
	defaults settings
	// handsOver is false where an acquisition takes more than its script.
	handsOver bool
	queues    bool // processes wait in a line, which a quorum has no place for
	hears     any  // yes when a message that reaches no connection of one server reaches nobody
	publish   any  // PUBLISH or SPUBLISH
	observers []Observer

	started  moment
	id       string        // of this Locker; owners begin with it
	self     any           // id
	sequence atomic.Uint64 // numbers owners and holds

	tasks   tasks
	agenda  *agenda
	report  report
	lines   lines
	wakeups *wakeups

	mu        sync.Mutex
	leases    map[*lease]struct{} // held
	asking    int                 // calls that want a lock
	unsettled int                 // settlements under way
	drained   chan struct{}       // closed when none holds or asks; nil unless closing
	settled   chan struct{}       // closed when there are no settlements; nil unless closing
	closing   chan struct{}       // closed when Close begins
	closed    chan struct{}       // closed when Close ended
}

// New returns a Locker on client. It does no network I/O and starts no
// goroutine. It fails when the client is nil or an option is bad; all that is
// wrong is reported at once.
//
// The client stays yours: close the Locker first, then the client. With its option
// ContextTimeoutEnabled calls that nobody can cancel, every release among them, need
// no goroutine and are faster.
func New(client redis.UniversalClient, opts ...Option) (*Locker, error) {
	if isNil(client) {
		return nil, errors.New("core: New needs a Redis client, got nil")
	}
	l, err := newLocker(opts, func(s *settings) time.Duration { return min(defaultTimeout, s.lease/3) })
	if err != nil {
		return nil, err
	}
	replicas := l.defaults.replicas
	if err := replicas.check(client, l.timeout); err != nil {
		return nil, err
	}
	l.handsOver = replicas == replication{}
	l.queues = true
	if replicas.replicas > 0 {
		replicas.clocks = newClocks(l, client)
	}
	_, isCluster := client.(*redis.ClusterClient)
	l.hears = flag(!isCluster || l.defaults.sharded)
	l.start(single{[]*node{newNode(client, l, replicas)}})
	return l, nil
}

// newLocker returns a Locker that lacks its backend.
func newLocker(opts []Option, timeout func(*settings) time.Duration) (*Locker, error) {
	s := settings{ofNew: true, prefix: defaultPrefix, lease: defaultLease}
	if err := s.apply(opts); err != nil {
		return nil, err
	}
	l := &Locker{
		prefix:    s.prefix,
		timeout:   cmp.Or(s.timeout, timeout(&s)),
		defaults:  s,
		started:   thisMoment(),
		id:        uuid.NewString(),
		leases:    map[*lease]struct{}{},
		hears:     yes,
		publish:   "PUBLISH",
		closing:   make(chan struct{}),
		closed:    make(chan struct{}),
		observers: s.observers,
	}
	l.self = l.id
	if s.sharded {
		l.publish = "SPUBLISH"
	}
	l.report.logger = s.logger
	return l, nil
}

func (l *Locker) start(b backend) {
	l.backend = b
	l.agenda = newAgenda(&l.tasks, b.flush)
	l.wakeups = newWakeups(l)
}

func isNil(client redis.UniversalClient) bool {
	if client == nil {
		return true
	}
	v := reflect.ValueOf(client)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

var defaultLocker atomic.Pointer[Locker]

// SetDefault makes l the Locker of wrappers that were given none, as
// slog.SetDefault does for loggers. They look it up for every request, so the
// order of set-up does not matter. nil takes the default away. Safe for
// concurrent use.
func SetDefault(l *Locker) { defaultLocker.Store(l) }

// Default returns what [SetDefault] set last, or nil. This package never uses it
// by itself. Safe for concurrent use.
func Default() *Locker { return defaultLocker.Load() }

// holdField begins the fields of a lock's hash that mark its holds.
const holdField = ownFields + "hold:"

// nextHold returns the field of a hold, which no other has, in any process. What
// follows holdField may name an owner.
func (l *Locker) nextHold() string {
	return holdField + l.id + ":" + strconv.FormatUint(l.sequence.Add(1), 10)
}
