package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// NewQuorum returns a Locker on several independent Redis masters. A lock is held
// when a majority of them has granted it, so that it works while most of them do.
// The algorithm is Redlock (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/)
// with renewal, wake-ups and a fencing token that is the same for all members. See
// docs/guarantees.md for what that promises and what not: the members must not be
// replicas of one another, and one that loses its data must stay away for a lease.
//
// It takes an odd number of clients, three or more, none of them twice, and the
// options of [New]. The default [Timeout] for each member is 500 ms or a tenth of
// the lease, whichever is less. No majority reachable is [ErrUnavailable]; a
// majority reachable, but the lock held, is [ErrNotAcquired]. It does no network
// I/O and starts no goroutine.
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
	if l.defaults.Replicas != (conn.Replicas{}) {
		return nil, errors.New("core: NewQuorum takes no Replicas: its members vouch for one another")
	}
	l.start(clients...)
	return l, nil
}

var errOfQuorum = errors.New("core: Shared and Permits do not go with a Locker of NewQuorum: the locks of a quorum are exclusive")

const quorumTimeout = 500 * time.Millisecond
