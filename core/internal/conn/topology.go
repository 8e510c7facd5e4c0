package conn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// topology is what a cluster client has to know before the first command: which node has
// which keys. go-redis finds out on the goroutine that asks, one node after the other,
// and does not always stop when its context ends. So one goroutine asks for all commands,
// and they wait no longer than they want to.
type topology struct {
	known atomic.Bool // once it is, go-redis does not forget it

	mu      sync.Mutex
	pending *lookup
}

// lookup is a question under way.
type lookup struct {
	done chan struct{}
	err  error
}

// locate returns nil when the client knows where keys are, which all but those of
// clusters do. over: ctx or the timeout has ended.
func (s *Server) locate(ctx context.Context, timeout time.Duration) (err error, over bool) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok || s.topology.known.Load() {
		return nil, false
	}
	asked := s.lookup(cluster)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-asked.done:
		return asked.err, false
	case <-timer.C:
		return ErrNoAnswer, true
	case <-ctx.Done():
		return Ended(ctx), true
	}
}

// lookup asks, unless somebody does.
func (s *Server) lookup(cluster *redis.ClusterClient) *lookup {
	t := &s.topology
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		asked := &lookup{done: make(chan struct{})}
		t.pending = asked
		s.config.Workers.Start(func() {
			ctx, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
			defer cancel()
			_, asked.err = cluster.MasterForKey(ctx, s.config.Prefix)
			if asked.err == nil {
				t.known.Store(true)
			} else {
				s.heard(asked.err)
			}
			t.mu.Lock()
			t.pending = nil
			t.mu.Unlock()
			close(asked.done)
		})
	}
	return t.pending
}
