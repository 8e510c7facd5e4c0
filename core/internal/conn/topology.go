package conn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

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
