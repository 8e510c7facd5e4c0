// Package store is what Redis knows about locks: requests and their outcomes, each with its type, and the scripts that
// do them. It keeps no state of a lock in this process.
//
// A [Store] is one Redis, or several independent ones, where a majority decides: a quorum. [Store.Acquire] takes a lock or
// enters one, for a [Claim]; [Store.Renew] prolongs it, [Store.Release] ends one hold.
//
// A request that Redis has answered fails with what it said: [*Busy], [*Answered], an Err of this package, or a bool that is false. All
// other errors are [*conn.Failure]. What an acquisition whose outcome is unknown may have left in Redis is compensated: its
// release is given to [Config].Compensate as a [Compensation], to be sent until Redis confirms it. Of a quorum each
// member is compensated for itself. A reply that no script gives leaves the outcome unknown: the server only resembles
// Redis.
//
// The commands are in the folder scripts, each with a header that tells keys, arguments and replies. What several
// share, or not every call needs, is in scripts/parts, put in at the line "-- include". lock.lua and queue.lua tell
// what is in Redis.
package store

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Config is what a Store needs to know. Sharded and Loaded may be zero.
type Config struct {
	Process string        // id of this process; holds and the owners they bring begin with it
	Timeout time.Duration // of one request
	Sharded bool          // wake-ups go by sharded pub/sub
	Workers conn.Workers
	Loaded  func(conn.Load) // is told the load of a quorum, as of a server; nil: nobody wants to know
	// Compensate takes over a release that must be sent until Redis confirms it. It does not block, and is called on
	// any goroutine.
	Compensate func(*Compensation)
}

// Store is one Redis, where locks live, or a quorum of several. Its methods are safe for concurrent use.
type Store struct {
	config  Config
	servers []*conn.Server
	scripts *scripts

	// Of a quorum.
	gate  *conn.Gate
	usual atomic.Int64 // how long the slower members take to vote, in ns
}

// New returns a Store on one Redis. It does no network I/O and starts no goroutine.
func New(server *conn.Server, c Config) *Store { return newStore([]*conn.Server{server}, c) }

// NewQuorum is New for an odd number of servers. Such a Store cannot hand a lock over.
func NewQuorum(servers []*conn.Server, c Config) *Store {
	s := newStore(servers, c)
	s.gate = conn.NewGate(c.Timeout, c.Loaded)
	return s
}

func newStore(servers []*conn.Server, c Config) *Store {
	_, isCluster := servers[0].Client().(*redis.ClusterClient)
	of := plainScripts
	if c.Sharded {
		of = shardedScripts
	} else if isCluster {
		of = clusterScripts
	}
	return &Store{config: c, servers: servers, scripts: of()}
}

// Margin is how long a holder stops before the end of a lease: timers fire late under load. In a quorum it is also for clocks that run
// at different speeds, as Redlock has it.
func (s *Store) Margin(lease time.Duration) time.Duration {
	if s.IsQuorum() {
		return lease/100 + 2*time.Millisecond
	}
	return min(lease/100, 10*time.Millisecond)
}

// Acquire asks once for a lock. It blocks for Timeout at most, of a quorum for some times Timeout, and returns early when ctx ends. It
// fails with [*Busy], [ErrUpgrade], an [ErrGone] or a [*conn.Failure], and for an attempt with [*Answered], [ErrReused] or
// [ErrOutcomeUnknown]; then what the claim may have left in Redis, or may yet leave, is compensated. [Claim.Decided] must follow.
func (s *Store) Acquire(ctx context.Context, c *Claim) (Acquired, error) {
	command := c.prepare(s)
	if s.IsQuorum() {
		return s.elect(ctx, c)
	}
	return do(ctx, s.servers[0], command, s.config.Timeout, c.decode)
}

// LateCopies returns the claim's Resends if copies of it may still arrive, else nil: a pointer would keep the whole claim
// alive. They always may in a quorum: a member may be asked again, or answer, after the others.
func (s *Store) LateCopies(c *Claim) *conn.Resends {
	if s.IsQuorum() || c.Resends.MayArriveTwice() {
		return &c.Resends
	}
	return nil
}

// IsSilent reports whether Redis, or the majority of a quorum, has been asked for d without an answer to anybody.
func (s *Store) IsSilent(d time.Duration) bool {
	silent := 0
	for _, server := range s.servers {
		if server.IsSilent(d) {
			silent++
		}
	}
	return 2*silent > len(s.servers)
}

// IsQuorum says that the servers are the members of a quorum. It has no queue, for a grant by one member means nothing, and a member
// may have a lock that is gone for the others, and may never confirm that it has not.
func (s *Store) IsQuorum() bool { return len(s.servers) > 1 }

// HandOffNeedsRedis says that a call must ask Redis for a lock, even if its process knows that it would get it. Replicas have what a
// command has written. The clocks of a quorum's members differ: another majority might give a smaller token than the process has.
func (s *Store) HandOffNeedsRedis() bool { return s.IsQuorum() || s.servers[0].WaitsForReplicas() }

// Stop ends what is sent again without anybody who waits, and what is told of the load.
func (s *Store) Stop() {
	for _, server := range s.servers {
		server.Stop()
	}
	if s.IsQuorum() {
		s.gate.Stop()
	}
}

// Servers are where the locks are.
func (s *Store) Servers() []*conn.Server { return s.servers }

// SharesRedis reports whether two surely keep their locks in one place.
func (s *Store) SharesRedis(other Locks) bool {
	theirs := other.Servers()
	return len(s.servers) == len(theirs) && !slices.ContainsFunc(s.servers, func(ours *conn.Server) bool {
		return !slices.ContainsFunc(theirs, func(theirs *conn.Server) bool {
			return conn.Same(ours.Client(), theirs.Client())
		})
	})
}

// FindDivided returns an error when a client that does not know of clusters has reached one node of several: it cannot
// take most locks. It returns nil when it did not find out until ctx ended. It looks for keys under prefix, and writes
// none.
func (s *Store) FindDivided(ctx context.Context, prefix string) (err error) {
	const step = 256 // hardly a node of a cluster has no slot that is looked at
	var looks []*conn.Command
	for slot := 0; slot < slots; slot += step {
		tag := tags()[slot]
		probe := prefix + "latchkey:probe:{" + string(tag[:]) + "}"
		looks = append(looks, &conn.Command{Script: s.scripts.inspect, Keys: 2, Words: []any{probe, probe}})
	}
	for _, server := range s.servers {
		client, ok := server.Client().(*redis.Client)
		if !ok {
			continue
		}
		server.DoAll(ctx, looks, s.config.Timeout, func(_ int, _ conn.Reply, failure error) {
			if conn.IsMoved(failure) {
				err = fmt.Errorf("%s is one node of a cluster, others have the rest of the keys: "+
					"use redis.NewClusterClient, or core.Open with ?addr=host:port of another node: %w", client.Options().Addr, failure)
			}
		})
	}
	return err
}

// NewHold returns the name of a hold, which no other has, in any process. It is the owner that the hold brings along
// for a caller that has chosen none. It has 64 random bits, so that whoever has seen owners cannot make up a grant for
// a hold that waits: ChaCha8, seeded by the system.
func (s *Store) NewHold() string {
	var bits [8]byte
	binary.LittleEndian.PutUint64(bits[:], rand.Uint64())
	var room [64]byte
	hold := append(append(room[:0], s.config.Process...), ':')
	return string(base64.RawURLEncoding.AppendEncode(hold, bits[:]))
}

// Flush sends what was queued: renewals, compensations. It does not block.
func (s *Store) Flush() {
	for _, server := range s.servers {
		server.Flush()
	}
}

func do[T any](
	ctx context.Context, server *conn.Server, c *conn.Command, timeout time.Duration, decode func(conn.Reply) (T, error),
) (T, error) {
	reply, err := server.Do(ctx, c, timeout)
	return decoded(server, c, reply, err, decode)
}

// decoded reads a reply. One that nobody can read may stand for something that was done.
func decoded[T any](
	server *conn.Server, c *conn.Command, reply conn.Reply, err error, decode func(conn.Reply) (T, error),
) (answer T, _ error) {
	if err != nil {
		return answer, err
	}
	answer, err = decode(reply)
	if c.Compensator != nil && isFailure(err) && conn.OutcomeOf(err) == conn.Unknown {
		c.Compensator.Compensate(server)
	}
	return answer, err
}

// isFailure tells an error that leaves the answer unknown from one that is the answer.
func isFailure(err error) bool {
	_, failed := err.(*conn.Failure)
	return failed
}
