package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// topology is what a cluster client has to know before the first call: which node has
// which keys. go-redis finds out on the goroutine that asks, one node after the other,
// and does not always stop when its context ends. So one goroutine asks for all calls,
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

// await returns nil when the client knows where keys are, which all but those of
// clusters do. over: ctx or the timeout has ended.
func (n *node) await(ctx context.Context, timeout time.Duration) (err error, over bool) {
	cluster, ok := n.client.(*redis.ClusterClient)
	if !ok || n.topology.known.Load() {
		return nil, false
	}
	asked := n.lookup(cluster)
	timer := n.timer(timeout)
	defer n.timers.Put(timer)
	defer timer.Stop()
	select {
	case <-asked.done:
		return asked.err, false
	case <-timer.C:
		return errNoAnswer, true
	case <-ctx.Done():
		return ended(ctx), true
	}
}

// lookup asks, unless somebody does.
func (n *node) lookup(cluster *redis.ClusterClient) *lookup {
	t := &n.topology
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		asked := &lookup{done: make(chan struct{})}
		t.pending = asked
		n.tasks.start(func() {
			ctx, cancel := context.WithTimeout(context.Background(), n.timeout)
			defer cancel()
			_, asked.err = cluster.MasterForKey(ctx, n.prefix)
			if asked.err == nil {
				t.known.Store(true)
			} else {
				n.failed(asked.err)
			}
			t.mu.Lock()
			t.pending = nil
			t.mu.Unlock()
			close(asked.done)
		})
	}
	return t.pending
}
