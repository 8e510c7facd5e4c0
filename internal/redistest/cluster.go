//go:build go1.25

package redistest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// slots is how many hash slots a cluster has.
const slots = 16384

// Cluster is a Redis Cluster of real nodes on loopback ports.
type Cluster struct {
	nodes []*Server
	admin map[*Server]*redis.Client // one connection to each node
	ids   map[*Server]string
}

// StartCluster runs masters*(1+replicasPerMaster) nodes with the given further
// arguments, and returns when each of them finds the cluster in order, agrees
// with the others on who serves what, and every replica is in step with its
// master. A silent node counts as failed after two seconds. The cluster ends
// with the test; without redis-server it skips or fails as Start does.
func StartCluster(tb testing.TB, masters, replicasPerMaster int, args ...string) *Cluster {
	tb.Helper()
	args = append([]string{
		"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
		"--cluster-node-timeout", "2000", "--cluster-allow-replica-migration", "no",
	}, args...)
	c := &Cluster{admin: map[*Server]*redis.Client{}, ids: map[*Server]string{}}
	for range masters * (1 + replicasPerMaster) {
		s := Start(tb, args...)
		c.nodes = append(c.nodes, s)
		c.admin[s] = s.Client(tb, quiet)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.form(ctx, masters); err != nil {
		tb.Fatalf("forming the cluster: %v", err)
	}
	c.AwaitStable(tb)
	return c
}

// quiet makes a client that sends what it is told to and nothing else, once.
func quiet(o *redis.Options) {
	o.PoolSize, o.MaxRetries, o.Protocol, o.DisableIdentity = 1, -1, 2, true
	o.DialTimeout, o.ReadTimeout = patience, patience
}

// form makes the first nodes masters, and the others their replicas in turn.
func (c *Cluster) form(ctx context.Context, masters int) error {
	for i, s := range c.nodes {
		id, err := c.admin[s].Do(ctx, "cluster", "myid").Text()
		if err != nil {
			return err
		}
		c.ids[s] = id
		// Different epochs from the start spare the nodes a quarrel.
		if err := c.admin[s].Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			return err
		}
		if i < masters {
			first, last := i*slots/masters, (i+1)*slots/masters-1
			if err := c.admin[s].ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
				return err
			}
		}
		for _, other := range c.nodes[:i] { // all pairs, rather than wait for gossip
			if err := c.admin[s].ClusterMeet(ctx, "127.0.0.1", fmt.Sprint(other.port)).Err(); err != nil {
				return err
			}
		}
	}
	for i, s := range c.nodes[masters:] {
		master := c.ids[c.nodes[i%masters]]
		var err error
		if !poll(patience, func() bool { // until it has heard of its master
			err = c.admin[s].ClusterReplicate(ctx, master).Err()
			return err == nil
		}) {
			return err
		}
	}
	return nil
}

// Nodes returns every node, dead or alive: first those that began as masters.
func (c *Cluster) Nodes() []*Server { return c.nodes }

// Addrs returns the address of every node.
func (c *Cluster) Addrs() []string {
	var out []string
	for _, s := range c.nodes {
		out = append(out, s.Addr())
	}
	return out
}

// Client returns a cluster client with go-redis's own defaults, closed at the
// end of the test.
func (c *Cluster) Client(tb testing.TB, configure ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	tb.Helper()
	options := &redis.ClusterOptions{Addrs: c.Addrs(), Password: c.nodes[0].password()}
	for _, f := range configure {
		f(options)
	}
	client := redis.NewClusterClient(options)
	tb.Cleanup(func() { _ = client.Close() }) // the test may have closed it
	return client
}

// AwaitStable returns when the running nodes find the cluster in order, agree
// with each other, and every running replica is in step with its master. They
// notice only after two seconds that a node is dead: see AwaitFailover.
func (c *Cluster) AwaitStable(tb testing.TB) {
	tb.Helper()
	why := ""
	if !poll(2*patience, func() bool { why = c.unstable(); return why == "" }) {
		tb.Fatalf("the cluster does not become stable: %s", why)
	}
}

// unstable names something that is not in order yet, or nothing.
func (c *Cluster) unstable() string {
	ctx := context.Background()
	var running []*Server
	for _, s := range c.nodes {
		if s.Running() {
			running = append(running, s)
		}
	}
	// The nodes are asked at the same time: the answers are to fit together.
	found := make([]string, len(running))
	views := make([]string, len(running))
	var wg sync.WaitGroup
	for i, s := range running {
		wg.Go(func() {
			info, err := c.admin[s].ClusterInfo(ctx).Result()
			replication, err2 := c.admin[s].Info(ctx, "replication").Result()
			view, err3 := c.view(ctx, s)
			switch {
			case err != nil || err2 != nil || err3 != nil:
				found[i] = fmt.Sprintf("%s does not answer: %v, %v, %v", s.Addr(), err, err2, err3)
			case !strings.Contains(info, "cluster_state:ok"):
				found[i] = s.Addr() + " finds the cluster failing"
			case strings.Contains(replication, "role:slave") && !strings.Contains(replication, "master_link_status:up"):
				found[i] = s.Addr() + " is not in step with its master"
			default:
				found[i] = c.unheard(ctx, s, replication)
			}
			views[i] = view.String()
		})
	}
	wg.Wait()
	for i := range running {
		switch {
		case found[i] != "":
			return found[i]
		case views[i] != views[0]:
			return fmt.Sprintf("two views:\n%s\n%s", views[0], views[i])
		}
	}
	return ""
}

// unheard says which replicas of a master are not sent its writes yet, or
// nothing. Both sides may call a replica online a second before that. FUNCTION
// FLUSH is a write without a key, so that any node takes it; there is none
// before Redis 7.
func (c *Cluster) unheard(ctx context.Context, s *Server, replication string) string {
	replicas := 0
	for line := range strings.Lines(replication) {
		_, _ = fmt.Sscanf(line, "connected_slaves:%d", &replicas)
	}
	if replicas == 0 || strings.Contains(replication, "role:slave") {
		return ""
	}
	pipe := c.admin[s].Pipeline()
	pipe.FunctionFlush(ctx)
	heard := pipe.Do(ctx, "wait", replicas, 200)
	_, _ = pipe.Exec(ctx)
	if n, _ := heard.Int(); n < replicas {
		return fmt.Sprintf("%d of %d replicas hear %s", n, replicas, s.Addr())
	}
	return ""
}

// Proxies puts a proxy before every node. A client goes through them when its
// Dialer is the method Dial of the result.
func (c *Cluster) Proxies(tb testing.TB) Proxies {
	tb.Helper()
	out := Proxies{}
	for _, s := range c.nodes {
		out[s.Addr()] = s.Proxy(tb)
	}
	return out
}
