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

// Config is what a Store needs to know; all of it but Sharded.
type Config struct {
	Process string        // id of this process; holds and the owners they bring begin with it
	Timeout time.Duration // of one request
	Sharded bool          // wake-ups go by sharded pub/sub
	Workers conn.Workers
	// Compensate takes over a release that must be sent until Redis confirms it. It does not block, and is called on
	// any goroutine.
	Compensate func(*Compensation)
}

// Store is where locks live: one Redis, or a quorum of several. Its methods are safe for concurrent use.
type Store struct {
	// Can is what it can do. It does not change.
	Can Abilities

	config  Config
	servers []*conn.Server
	scripts *scripts
	usual   atomic.Int64 // how long the slower members of a quorum take to vote, in ns
}

// Abilities are what a Store can do, of what not all can.
type Abilities struct {
	Grant  bool // a release grants the lock to who waits first: there is a queue
	PassOn bool // the process may pass a lock on in memory
	Differ bool // some of its servers may know of a lock what others do not
}

// New returns a Store on one Redis. It does no network I/O and starts no goroutine.
func New(server *conn.Server, c Config) *Store {
	return newStore([]*conn.Server{server}, c, Abilities{Grant: true, PassOn: !server.WaitsForReplicas()})
}

// NewQuorum returns a Store on several independent Redis, an odd number of them: what a majority says counts. It does
// no network I/O and starts no goroutine.
func NewQuorum(servers []*conn.Server, c Config) *Store {
	return newStore(servers, c, Abilities{Differ: true})
}

func newStore(servers []*conn.Server, c Config, can Abilities) *Store {
	_, isCluster := servers[0].Client().(*redis.ClusterClient)
	of := plainScripts
	if c.Sharded {
		of = shardedScripts
	} else if isCluster {
		of = clusterScripts
	}
	return &Store{Can: can, config: c, servers: servers, scripts: of()}
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

// SharesRedis reports whether two Stores surely keep their locks in one place.
func (s *Store) SharesRedis(other *Store) bool {
	return len(s.servers) == len(other.servers) && !slices.ContainsFunc(s.servers, func(ours *conn.Server) bool {
		return !slices.ContainsFunc(other.servers, func(theirs *conn.Server) bool {
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
		looks = append(looks, &conn.Command{Script: s.scripts.inspect, Keys: 1, Words: []any{prefix + "latchkey:probe:{" + string(tag[:]) + "}"}})
	}
	for _, server := range s.servers {
		client, ok := server.Client().(*redis.Client)
		if !ok {
			continue
		}
		server.DoAll(ctx, looks, s.config.Timeout, func(_ int, _ conn.Reply, failure error) {
			if conn.IsMoved(failure) {
				err = fmt.Errorf("%s is one node of a cluster, others have the rest of the keys: use redis.NewClusterClient, or core.Open with ?addr=host:port of another node: %w",
					client.Options().Addr, failure)
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

// do runs a command on one server.
func do[T any](ctx context.Context, server *conn.Server, c *conn.Command, timeout time.Duration, decode func(conn.Reply) (T, error)) (T, error) {
	reply, err := server.Do(ctx, c, timeout)
	return decoded(server, c, reply, err, decode)
}

// decoded reads a reply. One that nobody can read may stand for something that was done.
func decoded[T any](server *conn.Server, c *conn.Command, reply conn.Reply, err error, decode func(conn.Reply) (T, error)) (answer T, _ error) {
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
