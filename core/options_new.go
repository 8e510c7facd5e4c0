package core

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

const quorumTimeout = 500 * time.Millisecond

// Prefix is what the names of all locks begin with in Redis; Lockers exclude one another only when
// they share it. It ends with a colon and has no other, so that no lock has the name of one with
// another prefix; braces and control characters are refused. The default is "lock:". Option of
// [New] only.
func Prefix(p string) Option {
	if strings.ContainsAny(p, "{}") || strings.ContainsFunc(p, option.IsControl) || len(p) > store.MaxKeyBytes {
		return refused("Prefix(%q): braces, control characters and more than %d bytes are not allowed", p, store.MaxKeyBytes)
	}
	if plain := strings.ReplaceAll(cmp.Or(strings.Trim(p, ":"), "lock"), ":", ".") + ":"; p != plain {
		return refused("Prefix(%q): it must end with a colon and have no other, or locks could have the names of another prefix's: write %q", p, plain)
	}
	return ofNew("Prefix", func(s *settings) { s.Prefix = p })
}

// Timeout bounds one request to Redis; after it the outcome counts as unknown and is compensated in
// the background. A renewal never takes longer than a third of its lease. Option of [New] only. The
// default is 2 s or a third of the lease, whichever is less; 1 ms to a day.
func Timeout(d time.Duration) Option {
	return ofNew("Timeout", ofDuration("Timeout", d, longestLease, func(s *settings) { s.Timeout = d }).set)
}

// Logger receives what no caller can be told: lost locks as errors, renewals in trouble and
// releases that failed as warnings; at most one line a second of each kind, which says how many
// were omitted. A [Locker.ForceUnlock] is information. The default is [slog.Default]. Option of
// [New] only.
func Logger(logger *slog.Logger) Option {
	if logger == nil {
		return refused("Logger is nil")
	}
	return ofNew("Logger", func(s *settings) { s.Logger = logger })
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
// below a lease, or a failover may free a lock that is held. With a [redis.Client], Sentinel's
// included, the first lock has them compared in the background, and a difference of more than a
// tenth of the lease is logged as a warning; that needs permission for INFO, TIME and PING.
//
// n is at least 1; timeout is at least 1 ms in whole milliseconds, less than [Timeout] and less
// than the client's ReadTimeout. Option of [New] only, with a [redis.Client] or a
// [redis.ClusterClient]; [NewQuorum] refuses it, its members vouch for one another.
func Replicas(n int, timeout time.Duration) Option {
	if n < 1 {
		return refused("Replicas(%d, %v): give at least 1 replica", n, timeout)
	}
	if timeout < time.Millisecond {
		return refused("Replicas(%d, %v): give at least 1ms", n, timeout)
	}
	return ofNew("Replicas", func(s *settings) {
		s.Replicas = conn.Replicas{N: n, Within: timeout.Truncate(time.Millisecond)}
	})
}

// ShardedPubSub sends wake-ups by sharded pub/sub, of Redis 7
// (https://redis.io/docs/latest/develop/pubsub/#sharded-pubsub): in a cluster a release then costs
// the nodes of its shard something, and not all nodes. All who wait for the same locks must agree
// about it, or they wake one another by polling only; a Redisson client of a cluster does so with
// shardedSubscriptionMode AUTO or ON. Option of [New] and [NewQuorum] only.
func ShardedPubSub() Option {
	return ofNew("ShardedPubSub", func(s *settings) { s.Sharded = true })
}

// Describe is what the Locker's process is called in the owner of each of its locks, for people who
// look at them: in the lock page, in Redis, in logs. Processes may have one name, of 1 to 15
// letters, digits, dots, dashes and underscores. The default is the end of the host's name. Option
// of [New] and [NewQuorum] only.
func Describe(name string) Option {
	if !processName.MatchString(name) {
		return refused("Describe(%q): give 1 to 15 letters (a to z, A to Z), digits, dots, dashes and underscores", name)
	}
	return ofNew("Describe", func(s *settings) { s.Describe = name })
}

// Observe has o told of all locks of the Locker. Given more than once, each of them is told, in
// that order. Option of [New] and [NewQuorum] only.
func Observe(o Observer) Option {
	if o == nil {
		return refused("Observe: the Observer is nil")
	}
	return ofNew("Observe", func(s *settings) { s.Observers = append(s.Observers, o) })
}

// ofNew is an option that calls refuse.
func ofNew(name string, set func(*settings)) Option {
	return Option{func(s *settings) {
		if s.Scope != option.OfLocker {
			s.Fail("%s is an option of New, not of a single call", name)
			return
		}
		set(s)
	}}
}
