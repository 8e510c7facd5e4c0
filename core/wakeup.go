package core

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// wakeups hears when locks become free, by one subscription connection for each
// Redis that publishes. It only accelerates: whoever waits polls as well.
type wakeups struct {
	nodes  []*node
	tasks  *tasks
	report *report
	signal func(lock string)

	mu      sync.Mutex
	byNode  map[redis.UniversalClient]*subscriber
	stopped bool
	ctx     context.Context // ends with stop
	cancel  context.CancelFunc
}

func newWakeups(nodes []*node, t *tasks, r *report, signal func(lock string)) *wakeups {
	w := &wakeups{nodes: nodes, tasks: t, report: r, signal: signal, byNode: map[redis.UniversalClient]*subscriber{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// publishers are the clients to subscribe with: a cluster passes messages on to
// all its nodes, a ring does not, of a quorum each member speaks for itself.
func (w *wakeups) publishers(n names) []redis.UniversalClient {
	clients := make([]redis.UniversalClient, 0, len(w.nodes))
	for _, node := range w.nodes {
		ring, isRing := node.client.(*redis.Ring)
		if !isRing {
			clients = append(clients, node.client)
		} else if shard, err := ring.GetShardClientForKey(n.channel); err == nil {
			clients = append(clients, shard)
		}
	}
	return clients
}

// watch wants wake-ups for a lock until unwatch. Once the subscription stands,
// the lock is signalled. It does not block.
func (w *wakeups) watch(n names) {
	clients := w.publishers(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	for _, client := range clients {
		s := w.byNode[client]
		if s == nil {
			s = &subscriber{wakeups: w, client: client, topics: map[string]*topic{}, kick: make(chan struct{}, 1)}
			w.byNode[client] = s
		}
		t := s.topics[n.channel]
		if t == nil {
			t = &topic{lock: n.lock}
			s.topics[n.channel] = t
		}
		t.watchers++
		s.changed()
		if !s.running {
			s.running = true
			w.tasks.start(s.run)
		}
	}
}

// unwatch takes one watch back.
func (w *wakeups) unwatch(n names) {
	clients := w.publishers(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, client := range clients {
		if t := w.topic(client, n); t != nil {
			t.watchers--
			t.idleSince = time.Now()
		}
	}
}

// listening reports whether wake-ups for the lock arrive, as far as is known,
// from most who may send them.
func (w *wakeups) listening(n names) bool {
	clients := w.publishers(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := 0
	for _, client := range clients {
		if t := w.topic(client, n); t != nil && t.confirmed {
			heard++
		}
	}
	return 2*heard > len(w.nodes)
}

func (w *wakeups) topic(client redis.UniversalClient, n names) *topic {
	if s := w.byNode[client]; s != nil {
		return s.topics[n.channel]
	}
	return nil
}

// stop ends all subscriptions.
func (w *wakeups) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.cancel()
}
