package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Replicas makes a lock count only when n replicas have it
// (https://redis.io/docs/latest/commands/wait/), so that a failover to one of
// them keeps it. [Locker.Lock] returns when they have acknowledged it; when fewer
// have within timeout, it is given back and the error is [ErrUnavailable]. A
// renewal prolongs a lock only when they have acknowledged that too: while they
// are missing, held locks end with their leases ([ErrLost]). A release is not
// waited for; a failover may bring a lock back for the rest of its lease.
//
// Which replica a failover promotes, Sentinel and Cluster decide: of equal priority
// the one furthest ahead, as far as they know. Where n is less than all of them it
// may be one that lacks the lock; where n is all, nothing can be locked while one
// is missing.
//
// A replica ends a lock by its own clock: the clocks of master and replicas must agree to
// well below a lease, or a failover may free a lock that is held. With a [redis.Client],
// Sentinel's included, the first lock has them compared in the background, and a
// difference of more than a tenth of the lease given to New is logged as a warning; it
// needs permission for INFO, TIME and PING, and is silent without. Of a cluster they are not compared.
//
// Option of [New] only, off by default. n is at least 1; timeout is at least 1 ms
// in whole milliseconds, less than [Timeout] and less than the client's
// ReadTimeout. New refuses it for a client that is neither a [redis.Client] nor a
// [redis.ClusterClient]; [NewQuorum] refuses it, its members vouch for one another.
func Replicas(n int, timeout time.Duration) Option {
	return func(s *settings) {
		s.onlyNew("Replicas", func() {
			switch {
			case n < 1:
				s.fail("Replicas(%d, %v): give at least 1 replica", n, timeout)
			case timeout < time.Millisecond:
				s.fail("Replicas(%d, %v): give at least 1ms", n, timeout)
			default:
				s.replicas = replication{replicas: n, timeout: timeout.Truncate(time.Millisecond)}
			}
		})
	}
}

// replication is how many replicas must have a write before it counts. The zero
// value asks for none.
type replication struct {
	replicas int
	timeout  time.Duration
	clocks   *clocks // to be compared; nil where they cannot be
}

// check reports why client cannot do it.
func (r replication) check(client redis.UniversalClient, timeout time.Duration) error {
	if r.replicas == 0 {
		return nil
	}
	var read time.Duration // 0: no limit
	switch c := client.(type) {
	case *redis.Client:
		read = c.Options().ReadTimeout
	case *redis.ClusterClient:
		read = c.Options().ReadTimeout
	default:
		return fmt.Errorf("core: Replicas needs a *redis.Client or *redis.ClusterClient, got %T", client)
	}
	switch {
	case r.timeout >= timeout:
		return fmt.Errorf("core: Replicas(%d, %v): the time must be less than Timeout, which is %v", r.replicas, r.timeout, timeout)
	case read > 0 && r.timeout >= read:
		return fmt.Errorf("core: Replicas(%d, %v): the time must be less than the client's ReadTimeout, which is %v", r.replicas, r.timeout, read)
	}
	return nil
}

// wants says whether replicas must have what a call writes.
func (r replication) wants(c *call) bool {
	return r.replicas > 0 && (c.script == acquireScript || c.script == renewScript)
}

// queue appends WAIT to a pipeline: it tells of the writes before it on its
// connection.
func (r replication) queue(ctx context.Context, pipe redis.Pipeliner) *redis.Cmd {
	return pipe.Do(ctx, "wait", r.replicas, r.timeout.Milliseconds())
}

// verify refuses a write that too few replicas have.
func (r replication) verify(values []any, wait *redis.Cmd) error {
	if len(values) == 0 || number(values[0]) != 1 {
		return nil // nothing was written
	}
	have, err := wait.Int()
	if err == nil && have >= r.replicas {
		return nil
	}
	return &shortfallError{have, r.replicas, err}
}

// shortfallError says that Redis did what it was asked, but not safely.
type shortfallError struct {
	have, want int
	cause      error // WAIT's own
}

func (e *shortfallError) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("whether %d replicas have the lock is unknown: %v", e.want, e.cause)
	}
	return fmt.Sprintf("%d of %d replicas have the lock", e.have, e.want)
}

func (e *shortfallError) Unwrap() error { return e.cause }

// runReplicated is run for a call that replicas must have: script and WAIT go
// over one connection to the node that serves the key. In a cluster it follows
// redirections itself, for a cluster client would send WAIT to any node.
func (n *node) runReplicated(ctx context.Context, c *call, f *flight) ([]any, error) {
	n.replication.clocks.check()
	target := n.serving(c.lock)
	whole, asking := false, false
	for redirections := 0; ; {
		pipe := target.Pipeline()
		if asking {
			pipe.Do(ctx, "asking")
		}
		cmd := once{redis.NewCmd(ctx, c.command(whole)...), f}
		_ = pipe.Process(ctx, cmd)
		wait := n.replication.queue(ctx, pipe)
		_, _ = pipe.Exec(ctx) // each command keeps its own error

		a := read(c, cmd.Cmd)
		moved, isMoved := redis.IsMovedError(a.err)
		ask, isAsk := redis.IsAskError(a.err)
		switch {
		case a.err == nil:
			return a.values, n.replication.verify(a.values, wait)
		case isUnknownScript(a.err) && !whole:
			whole = true
			continue
		case !isMoved && !isAsk || redirections == 3:
			return nil, a.err
		}
		redirections++
		asking = isAsk
		node, findErr := n.masterAt(ctx, cmp.Or(moved, ask))
		if findErr != nil {
			return nil, errors.Join(a.err, findErr)
		}
		target = node
	}
}

// masterAt returns the client of a cluster's node, after a fresh look at the
// cluster.
func (n *node) masterAt(ctx context.Context, addr string) (*redis.Client, error) {
	cluster, ok := n.client.(*redis.ClusterClient)
	if !ok {
		return nil, errors.New("the Redis is part of a cluster: it needs a cluster client")
	}
	var mu sync.Mutex
	var found *redis.Client
	err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		if c.Options().Addr == addr {
			found = c
		}
		return nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("the cluster knows no master at %s", addr)
	}
	return found, err
}
