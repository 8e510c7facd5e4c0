package conn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// topology is what a cluster client has to know before the first command: which node has which keys. go-redis
// finds out on the goroutine that asks, one node after the other, and does not always stop when its context
// ends. So one goroutine asks for all commands, and they wait no longer than they want to.
type topology struct {
	known atomic.Bool // once it is, go-redis does not forget it

	mu    sync.Mutex
	asked chan struct{} // closed when the question under way is answered; nil: there is none
	err   error         // the last answer
}

// awaitTopology returns nil when the client knows where keys are, which all but those of clusters do. An error
// is an answer, unless ctx or the timeout has ended.
func (s *Server) awaitTopology(ctx context.Context, timeout time.Duration) (progress, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok || s.topology.known.Load() {
		return awaited, nil
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-s.askTopology(cluster):
		s.topology.mu.Lock()
		defer s.topology.mu.Unlock()
		if s.topology.err == nil {
			return awaited, nil
		}
		return answered, s.topology.err
	case <-timer.C:
		return awaited, ErrNoAnswer
	case <-ctx.Done():
		return awaited, Ended(ctx)
	}
}

// askTopology asks, unless somebody does.
func (s *Server) askTopology(cluster *redis.ClusterClient) <-chan struct{} {
	t := &s.topology
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked == nil {
		asked := make(chan struct{})
		t.asked = asked
		s.config.Workers.Start(func() {
			ctx, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
			defer cancel()
			_, err := cluster.MasterForKey(ctx, s.config.Prefix)
			if err == nil {
				t.known.Store(true)
			} else {
				s.noteOutcome(err)
			}
			t.mu.Lock()
			t.asked, t.err = nil, err
			t.mu.Unlock()
			close(asked)
		})
	}
	return t.asked
}

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

// masterAt returns the client of a cluster's node, after a fresh look at the cluster.
func (s *Server) masterAt(ctx context.Context, addr string) (*redis.Client, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return nil, errors.New("the Redis is part of a cluster: it needs a cluster client")
	}
	var found atomic.Pointer[redis.Client]
	err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		if c.Options().Addr == addr {
			found.Store(c)
		}
		return nil
	})
	if err == nil && found.Load() == nil {
		err = fmt.Errorf("the cluster knows no master at %s", addr)
	}
	return found.Load(), err
}

// One command may do several calls only where one server has all keys. Behind the address of a client there
// may be a node of a cluster, which refuses such a command, or a proxy that spreads keys over servers: it
// takes the command to the server of its first key, where the others are not. So a key is written, and looked
// for from the servers of other keys, before calls are merged.
const (
	probes       = 16 // two servers look like one by chance once in 65,536
	probeTimeout = time.Second
	probeEvery   = 10 * time.Second // until they look like one
	probeScript  = "return redis.call('EXISTS', ARGV[1])"
)

type probe struct {
	undivided atomic.Bool // one server has all keys
	begun     interval
}

// merges says whether one command may do several calls. It does not block: as long as that is not known, it
// is false. So it is for a cluster.
func (p *pipeline) merges() bool {
	if p.probe.undivided.Load() {
		return true
	}
	if _, isCluster := p.server.client.(*redis.ClusterClient); !isCluster && p.isPrompt() && p.probe.begun.begins(probeEvery) {
		p.server.config.Workers.Start(func() { _ = recovered(func() error { p.seek(); return nil }) })
	}
	return false
}

// isPrompt says that the last answer was: a server that is busy is not asked for what may wait.
func (p *pipeline) isPrompt() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.window.isPrompt(time.Now())
}

// Merges reports whether a command may be of a merged script, as far as is known. It does not block.
func (s *Server) Merges() bool {
	_, isRing := s.client.(*redis.Ring) // each of its servers has some keys
	return !isRing && s.pipelineTo(s.client).merges()
}

func (p *pipeline) seek() {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	mark := p.server.config.Prefix + "latchkey:probe:" + uuid.NewString()
	if p.client.Set(ctx, mark, 1, probeEvery).Err() != nil {
		return
	}
	pipe := p.client.Pipeline()
	seen := make([]*redis.Cmd, probes)
	for i := range seen {
		seen[i] = pipe.Eval(ctx, probeScript, []string{mark + ":" + strconv.Itoa(i)}, mark)
	}
	_, _ = pipe.Exec(ctx) // each command keeps its own error
	p.client.Del(ctx, mark)
	for _, cmd := range seen {
		if n, err := cmd.Int(); err != nil || n != 1 {
			return
		}
	}
	p.probe.undivided.Store(true)
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
