package redistest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// seen is what one node says about another, or about itself.
type seen struct {
	id       string
	addr     string
	role     string // "master" or "slave"
	masterID string // of a slave
	failed   bool
	epoch    int
	slots    []string // "0-5460", "7"
}

func (n seen) serves(slot int) bool {
	return n.role == "master" && slices.ContainsFunc(n.slots, func(r string) bool {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		return errA == nil && errB == nil && a <= slot && slot <= b
	})
}

// view is what one node says about the whole cluster.
type view []seen

// String says who serves what and who follows whom: equal where nodes agree.
func (v view) String() string {
	var b strings.Builder
	for _, n := range v {
		fmt.Fprintln(&b, n.id, n.addr, n.role, n.masterID, n.failed, n.slots)
	}
	return b.String()
}

// view asks a node, with CLUSTER NODES.
func (c *Cluster) view(ctx context.Context, s *Server) (view, error) {
	text, err := c.admin[s].ClusterNodes(ctx).Result()
	if err != nil {
		return nil, err
	}
	var v view
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		n := seen{id: f[0], role: "slave", masterID: f[3]}
		n.addr, _, _ = strings.Cut(f[1], "@")
		for flag := range strings.SplitSeq(f[2], ",") {
			switch flag {
			case "master":
				n.role = flag
			case "fail":
				n.failed = true
			case "handshake", "noaddr":
				n.role = flag
			}
		}
		n.epoch, _ = strconv.Atoi(f[6])
		for _, r := range f[8:] {
			if !strings.HasPrefix(r, "[") { // a slot that moves is named in brackets
				n.slots = append(n.slots, r)
			}
		}
		v = append(v, n)
	}
	slices.SortFunc(v, func(a, b seen) int { return cmp.Compare(a.id, b.id) })
	return v, nil
}

// Slot is the hash slot of a key.
func (c *Cluster) Slot(tb testing.TB, key string) int {
	tb.Helper()
	for _, s := range c.nodes {
		if s.Running() {
			slot, err := c.admin[s].ClusterKeySlot(context.Background(), key).Result()
			if err == nil {
				return int(slot)
			}
		}
	}
	tb.Fatal("no node of the cluster answers")
	return 0
}

// MasterFor returns the node that the running nodes name as the master of the
// key's slot: where they differ, the one with the greatest epoch. It may be
// dead, until a failover.
func (c *Cluster) MasterFor(tb testing.TB, key string) *Server {
	tb.Helper()
	slot := c.Slot(tb, key)
	var views []view
	for _, s := range c.nodes {
		if !s.Running() {
			continue
		}
		if v, err := c.view(context.Background(), s); err == nil {
			views = append(views, v)
		}
	}
	if s := c.node(owner(views, slot)); s != nil {
		return s
	}
	tb.Fatalf("no node serves slot %d", slot)
	return nil
}

// owner is the id of the master of a slot: where views differ, the one with the
// greatest epoch.
func owner(views []view, slot int) string {
	var master seen
	for _, v := range views {
		for _, n := range v {
			if n.serves(slot) && (master.id == "" || n.epoch > master.epoch) {
				master = n
			}
		}
	}
	return master.id
}

// ReplicasOf returns the running replicas of a master, by their own account.
func (c *Cluster) ReplicasOf(tb testing.TB, master *Server) []*Server {
	tb.Helper()
	var out []*Server
	for _, s := range c.nodes {
		if s == master || !s.Running() {
			continue
		}
		v, err := c.view(context.Background(), s)
		if err != nil {
			tb.Fatalf("asking %s: %v", s.Addr(), err)
		}
		i := slices.IndexFunc(v, func(n seen) bool { return n.id == c.ids[s] })
		if i >= 0 && v[i].masterID == c.ids[master] {
			out = append(out, s)
		}
	}
	return out
}

// Failover has a replica take over the key's slot from its running master, in
// agreement with it, and returns the new master when all nodes agree.
func (c *Cluster) Failover(tb testing.TB, key string) *Server {
	tb.Helper()
	old := c.MasterFor(tb, key)
	replicas := c.ReplicasOf(tb, old)
	if len(replicas) == 0 {
		tb.Fatalf("%s has no replica", old.Addr())
	}
	// An attempt ends after five seconds. The other masters vote for the replicas
	// of one master once in two node time-outs only.
	asked := time.Time{}
	Await(tb, 2*patience, "the failover", func() bool {
		if time.Since(asked) > 6*time.Second {
			asked = time.Now()
			if err := c.admin[replicas[0]].ClusterFailover(context.Background()).Err(); err != nil {
				tb.Fatalf("failover: %v", err)
			}
		}
		return c.MasterFor(tb, key) != old
	})
	c.AwaitStable(tb)
	return c.MasterFor(tb, key)
}

// AwaitFailover returns the new master of the key's slot when it is no longer
// old, and all nodes agree. Call it after old was stopped or killed.
func (c *Cluster) AwaitFailover(tb testing.TB, key string, old *Server) *Server {
	tb.Helper()
	Await(tb, patience, "the failover", func() bool { return c.MasterFor(tb, key) != old })
	c.AwaitStable(tb)
	return c.MasterFor(tb, key)
}

// MoveSlot moves the key's slot, and all keys in it, to another master, and
// returns when all nodes agree. between, unless nil, runs when the slot is open
// and its keys have not moved yet.
func (c *Cluster) MoveSlot(tb testing.TB, key string, to *Server, between func()) {
	tb.Helper()
	ctx := context.Background()
	slot, from := c.Slot(tb, key), c.MasterFor(tb, key)
	do := func(s *Server, args ...any) any {
		tb.Helper()
		v, err := c.admin[s].Do(ctx, args...).Result()
		if err != nil {
			tb.Fatalf("moving slot %d, %v: %v", slot, args, err)
		}
		return v
	}
	do(to, "cluster", "setslot", slot, "importing", c.ids[from])
	do(from, "cluster", "setslot", slot, "migrating", c.ids[to])
	if between != nil {
		between()
	}
	for {
		keys, _ := do(from, "cluster", "getkeysinslot", slot, 100).([]any)
		if len(keys) == 0 {
			break
		}
		migrate := []any{"migrate", "127.0.0.1", to.port, "", 0, 5000}
		if p := to.password(); p != "" {
			migrate = append(migrate, "auth", p)
		}
		do(from, append(append(migrate, "keys"), keys...)...)
	}
	for _, s := range []*Server{to, from} {
		do(s, "cluster", "setslot", slot, "node", c.ids[to])
	}
	c.AwaitStable(tb)
}

// node returns the server with a cluster id, or nil.
func (c *Cluster) node(id string) *Server {
	for _, s := range c.nodes {
		if c.ids[s] == id {
			return s
		}
	}
	return nil
}

// Proxies are the proxies before the nodes of a cluster, by the address of the node.
type Proxies map[string]*Proxy

// Dial connects to the proxy that stands before the node at addr.
func (p Proxies) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if proxy, ok := p[addr]; ok {
		addr = proxy.Addr()
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}
