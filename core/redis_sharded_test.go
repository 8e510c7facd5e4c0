//go:build go1.25

package core_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

func channelOf(key string) string { return "redisson_lock__channel:{lock:" + key + "}" }

// heardAt says whether somebody listens to a key's sharded channel at a node.
func heardAt(t *testing.T, node *redistest.Server, key string) bool {
	t.Helper()
	n, err := node.Client(t).PubSubShardNumSub(background, channelOf(key)).Result()
	return err == nil && n[channelOf(key)] > 0
}

// needSharded skips a test on servers that have no sharded pub/sub: Redis 6.2 has none.
func needSharded(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	if info, err := cluster.Nodes()[0].Client(t).Do(background, "command", "info", "spublish").Slice(); err == nil && info[0] == nil {
		t.Skip("this server has no sharded pub/sub")
	}
}

// Wake-ups reach calls that wait for locks of every node, sooner than a poll would.
// Sharded ones burden no other shard.
func TestWakeupsInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 1)
	stalls := redistest.WatchStalls(t)
	for name, opts := range map[string][]core.Option{"plain": nil, "sharded": {core.ShardedPubSub()}} {
		t.Run(name, func(t *testing.T) {
			if name == "sharded" {
				needSharded(t, cluster)
			}
			holder, waiting := onRedis(t, cluster.Client(t), opts...), onRedis(t, cluster.Client(t), opts...)
			before, _ := publishedOnBus(t, cluster)
			const rounds = 15 // on keys of all masters
			var took []time.Duration
			for i := range rounds {
				key := fmt.Sprint(name, i)
				k := take(t, background, holder, key)
				got := make(chan outcome, 1)
				go func() {
					k, err := waiting.Lock(background, key)
					got <- outcome{lock: k, err: err}
				}()
				if name == "sharded" {
					master := cluster.MasterFor(t, "lock:"+key)
					redistest.Await(t, inTheEnd, "a subscription", func() bool { return heardAt(t, master, key) })
				} else {
					awaitClusterSubscriber(t, cluster, key)
				}
				began := time.Now()
				unlock(t, k)
				o := <-got
				took = append(took, stalls.Since(began))
				if o.err != nil {
					t.Fatal(o.err)
				}
				unlock(t, o.lock)
			}
			slices.Sort(took)
			t.Logf("woken after %v (median), %v (longest)", took[rounds/2], took[rounds-1])
			if took[rounds/2] > 250*time.Millisecond { // polls come after half a second
				t.Errorf("most were not woken: %v", took)
			}
			sent, received := publishedOnBus(t, cluster)
			if name == "sharded" && sent > before || name == "plain" && sent == before && received == 0 {
				t.Errorf("%d messages went to all nodes of the cluster, of which they received %d in all", sent-before, received)
			}
		})
	}
}

// One connection to a node carries the subscriptions of all its slots. Taken out, that
// a command keeps to one slot, nothing is heard once locks of two slots are waited for.
func TestShardedSubscriptionsOfManySlots(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	needSharded(t, cluster)
	holder, waiting := onRedis(t, cluster.Client(t), core.ShardedPubSub()), onRedis(t, cluster.Client(t), core.ShardedPubSub())
	node := cluster.MasterFor(t, "lock:k0")
	var held []*core.Lock
	var all sync.WaitGroup
	for i := 0; len(held) < 5; i++ {
		key := fmt.Sprint("k", i)
		if cluster.MasterFor(t, "lock:"+key) != node {
			continue
		}
		held = append(held, take(t, background, holder, key))
		all.Go(func() { unlock(t, take(t, background, waiting, key)) })
	}
	allHeard := func() bool {
		return !slices.ContainsFunc(held, func(k *core.Lock) bool { return !heardAt(t, node, k.Key()) })
	}
	redistest.Await(t, inTheEnd, "the subscriptions", allHeard)
	if err := node.Client(t).ClientKillByFilter(background, "TYPE", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	redistest.Await(t, inTheEnd, "the subscriptions on a new connection", allHeard)
	unlock(t, held...)
	all.Wait()
}

// publishedOnBus counts the messages that nodes passed on to all others, which Valkey 8.0 does
// not, and those that they were passed.
func publishedOnBus(t *testing.T, cluster *redistest.Cluster) (sent, received int) {
	t.Helper()
	for _, node := range cluster.Nodes() {
		for line := range strings.Lines(node.Client(t).ClusterInfo(background).Val()) {
			var n int
			if k, _ := fmt.Sscanf(line, "cluster_stats_messages_publish_sent:%d", &n); k == 1 {
				sent += n
			} else if k, _ := fmt.Sscanf(line, "cluster_stats_messages_publish_received:%d", &n); k == 1 {
				received += n
			}
		}
	}
	return sent, received
}

// A sharded subscription lives on the node of its slot. Taken out, the following of
// a slot that moves, or of a failover, leaves the subscription where nobody
// publishes any more, and each wake-up costs a poll.
func TestShardedSubscriptionFollowsItsSlot(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 1)
	needSharded(t, cluster)
	holder := onRedis(t, cluster.Client(t), core.ShardedPubSub())
	waiting := onRedis(t, cluster.Client(t), core.ShardedPubSub())
	key, other := keysOf(t, cluster)
	// move returns the nodes that hear the channel from then on.
	follow := func(t *testing.T, move func() []*redistest.Server) {
		k := take(t, background, holder, key)
		got := make(chan error, 1)
		go func() {
			k, err := waiting.Lock(background, key)
			for errors.Is(err, core.ErrUnavailable) { // a failover takes as long as it takes
				k, err = waiting.Lock(background, key)
			}
			if err == nil {
				err = k.Abort(background)
			}
			got <- err
		}()
		isHeardAt := func(nodes []*redistest.Server) func() bool {
			return func() bool {
				return slices.ContainsFunc(nodes, func(s *redistest.Server) bool { return heardAt(t, s, key) })
			}
		}
		// After a failover it may be at a replica, which hears what its master publishes.
		redistest.Await(t, inTheEnd, "a subscription", isHeardAt(cluster.Nodes()))
		redistest.Await(t, inTheEnd, "the subscription to follow", isHeardAt(move()))
		redistest.Await(t, inTheEnd, "the holder to find the new master", func() bool {
			_, err := holder.Inspect(background, key)
			return err == nil
		})
		unlock(t, k)
		select {
		case err := <-got:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(inTheEnd):
			t.Error("the waiting call did not get the lock")
		}
	}
	t.Run("slot moves", func(t *testing.T) {
		follow(t, func() []*redistest.Server {
			to := cluster.MasterFor(t, "lock:"+other)
			cluster.MoveSlot(t, "lock:"+key, to, nil)
			return []*redistest.Server{to}
		})
	})
	t.Run("planned failover", func(t *testing.T) {
		follow(t, func() []*redistest.Server {
			old := cluster.MasterFor(t, "lock:"+key) // a replica then, which hears what its master publishes
			return []*redistest.Server{cluster.Failover(t, "lock:"+key), old}
		})
	})
	t.Run("master hangs", func(t *testing.T) {
		var hanging *redistest.Server
		follow(t, func() []*redistest.Server {
			hanging = cluster.MasterFor(t, "lock:"+key)
			hanging.Stop(t)
			return []*redistest.Server{cluster.AwaitFailover(t, "lock:"+key, hanging)}
		})
		hanging.Cont(t)
	})
}
