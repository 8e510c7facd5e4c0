package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
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
				s.replicas = conn.Replicas{N: n, Within: timeout.Truncate(time.Millisecond)}
			}
		})
	}
}
