package conn

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config is what a Server needs to know; Replicas may be left out.
type Config struct {
	Prefix  string        // of the keys it writes to find out whether one server has all
	Timeout time.Duration // of one request; silence is measured by it
	Workers Workers
	// Replicas that must have what certain scripts write. Check it first.
	Replicas Replicas
	// ReplicaClock is told, of each replica of a single master, by how much its clock is ahead, give or take the
	// doubt: once, in the background. Only a Server that waits for replicas needs it.
	ReplicaClock func(addr string, ahead, doubt time.Duration)
}

// Workers runs what a Server does in the background. Neither method blocks.
type Workers interface {
	Start(f func())
	Begin(task interface{ Run() })
}

// Server is one Redis, as a client reaches it. Its methods are safe for concurrent use.
type Server struct {
	client    redis.UniversalClient
	config    Config
	pipelines sync.Map  // by client
	slots     sync.Pool // holds each [*waitSlot] that nobody uses
	topology  topology
	silence   silence
	reload    interval

	mu    sync.Mutex
	queue []*Queued // that the next Flush sends
}

// New returns a Server. It does no network I/O and starts no goroutine. The client stays the caller's.
func New(client redis.UniversalClient, c Config) *Server {
	return &Server{client: client, config: c}
}

// Client returns the client.
func (s *Server) Client() redis.UniversalClient { return s.client }

// ClientFor returns the client of the one server that has a key, or that of all where it is not known. It
// does not block.
func (s *Server) ClientFor(key string) redis.UniversalClient {
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		if !s.topology.known.Load() {
			break
		}
		if node, err := c.MasterForKey(context.Background(), key); err == nil {
			return node
		}
	case *redis.Ring:
		if node, err := c.GetShardClientForKey(key); err == nil {
			return node
		}
	}
	return s.client
}

// LookAgain has a cluster client look for the master of a shard that does not answer, at most once a second.
// By itself it looks every minute only, and finds out about a failover long after it has happened. It does
// not block.
func (s *Server) LookAgain() {
	if cluster, ok := s.client.(*redis.ClusterClient); ok && s.reload.begins(time.Second) {
		cluster.ReloadState(context.Background()) // in the background, by go-redis
	}
}

// IsSilent reports whether this Redis has been asked for d without an answer to anybody.
func (s *Server) IsSilent(d time.Duration) bool { return s.silence.lasts(d) }

// noteOutcome takes how a request has ended.
func (s *Server) noteOutcome(err error) {
	s.silence.end(err)
	if err != nil && !isRefusal(err) {
		s.LookAgain()
	}
}

// failoverAddr is the address that go-redis shows for every Sentinel client.
const failoverAddr = "FailoverClient"

// Same reports whether two clients surely speak to one Redis.
func Same(a, b redis.UniversalClient) bool {
	if a == b {
		return true
	}
	x, ok := a.(*redis.Client)
	y, also := b.(*redis.Client)
	return ok && also &&
		x.Options().Network == y.Options().Network &&
		x.Options().Addr == y.Options().Addr &&
		x.Options().DB == y.Options().DB &&
		x.Options().Addr != failoverAddr
}

// interval paces what is done now and then.
type interval struct {
	mu   sync.Mutex
	last time.Time
}

// begins reports whether so much time has passed since it last reported so.
func (i *interval) begins(every time.Duration) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.last.IsZero() && time.Since(i.last) < every {
		return false
	}
	i.last = time.Now()
	return true
}
