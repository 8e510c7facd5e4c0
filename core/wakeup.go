package core

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ShardedPubSub sends wake-ups by sharded pub/sub
// (https://redis.io/docs/latest/develop/pubsub/#sharded-pubsub), which needs
// Redis 7: in a cluster a release then costs the nodes of its shard something, and
// not all nodes. Without it a wake-up goes to every node of a cluster. All who wait
// for the same locks must agree about it, or they wake one another by polling only;
// a Redisson client of a cluster does so with shardedSubscriptionMode AUTO or ON.
// Option of [New] and [NewQuorum] only.
func ShardedPubSub() Option {
	return func(s *settings) {
		s.onlyNew("ShardedPubSub", func() { s.sharded = true })
	}
}

// wakeups hears when locks become free, by one subscription connection for each
// Redis that publishes. It only accelerates: whoever waits polls as well.
type wakeups struct {
	nodes   []*node
	sharded bool
	tasks   *tasks
	report  *report
	signal  func(lock string)
	turn    func(n names, pause time.Duration)
	process string

	mu       sync.Mutex
	byClient map[redis.UniversalClient]*subscriber
	stopped  bool
	ctx      context.Context // ends with stop
	cancel   context.CancelFunc
}

func newWakeups(l *Locker) *wakeups {
	w := &wakeups{
		nodes:    l.backend.members(),
		sharded:  l.defaults.sharded,
		tasks:    &l.tasks,
		report:   &l.report,
		signal:   l.lines.signal,
		turn:     l.turn,
		process:  l.id,
		byClient: map[redis.UniversalClient]*subscriber{},
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// publisher is the client to subscribe with: a cluster passes messages on to all
// its nodes unless they are sharded, a ring does not.
func (w *wakeups) publisher(n *node, channel string) redis.UniversalClient {
	if _, isCluster := n.client.(*redis.ClusterClient); isCluster && !w.sharded {
		return n.client
	}
	return nodeOf(n.client, channel)
}

// watch wants wake-ups for a lock until unwatch. Once the subscription stands,
// the lock is signalled. It does not block.
func (w *wakeups) watch(n names) {
	for _, node := range w.nodes { // a quorum's members speak for themselves
		client := w.publisher(node, n.channel())
		w.mu.Lock()
		w.add(node, client, n, 1)
		w.mu.Unlock()
	}
}

// add wants to hear about a lock from a client of a node. w.mu is held.
func (w *wakeups) add(node *node, client redis.UniversalClient, n names, watchers int) {
	if w.stopped {
		return
	}
	s := w.byClient[client]
	if s == nil {
		s = &subscriber{wakeups: w, node: node, client: client, topics: map[string]*topic{}, kick: make(chan struct{}, 1)}
		w.byClient[client] = s
		w.tasks.start(s.run)
	}
	channel := n.channel()
	t := s.topics[channel]
	if t == nil {
		t = &topic{names: n, idleSince: time.Now()}
		s.topics[channel] = t
	}
	t.watchers += watchers
	s.changed()
}

// unwatch takes one watch back, wherever it has moved to.
func (w *wakeups) unwatch(n names) {
	channel := n.channel()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.byClient {
		if t := s.topics[channel]; t != nil && t.watchers > 0 {
			t.watchers--
			t.idleSince = time.Now()
		}
	}
}

// unheard notes that wake-ups for the lock do not arrive, whatever was confirmed: until
// one does, or there is a new connection.
func (w *wakeups) unheard(n names) {
	channel := n.channel()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.byClient {
		if t := s.topics[channel]; t != nil {
			t.confirmed = false
		}
	}
}

// listening reports whether wake-ups for the lock arrive, as far as is known,
// from most who may send them.
func (w *wakeups) listening(n names) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byClient) == 0 {
		return false
	}
	channel, heard := n.channel(), 0
	for _, s := range w.byClient {
		if t := s.topics[channel]; t != nil && t.confirmed {
			heard++
		}
	}
	return 2*heard > len(w.nodes)
}

// stop ends all subscriptions.
func (w *wakeups) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.cancel()
}
