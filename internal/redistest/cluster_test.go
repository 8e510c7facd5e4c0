package redistest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestOwnerHasTheGreatestEpoch(t *testing.T) {
	old := seen{id: "old", role: "master", epoch: 1, slots: []string{"0-100", "200"}}
	now := seen{id: "new", role: "master", epoch: 7, slots: []string{"50-200"}}
	late := seen{id: "late", role: "slave", epoch: 9, slots: []string{"50"}}
	for slot, want := range map[int]string{0: "old", 49: "old", 50: "new", 200: "new", 201: ""} {
		for _, views := range [][]view{{{old}, {now, late}}, {{now, late}, {old}}} {
			if got := owner(views, slot); got != want {
				t.Errorf("slot %d: %q, want %q", slot, got, want)
			}
		}
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, 1)
	client := c.Client(t)
	if len(c.Nodes()) != 6 {
		t.Fatalf("%d nodes", len(c.Nodes()))
	}
	masters := map[*Server]string{} // and a key of each
	for i := 0; len(masters) < 3 && i < 1000; i++ {
		key := fmt.Sprint("key", i)
		masters[c.MasterFor(t, key)] = key
	}
	for s, key := range masters {
		if err := client.Set(ctx, key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		direct := s.Client(t)
		if n, err := direct.Exists(ctx, key).Result(); n != 1 || err != nil {
			t.Errorf("%s is not on its master: %v", key, err)
		}
		if n, err := direct.Wait(ctx, 1, time.Second).Result(); n != 1 || err != nil {
			t.Errorf("%d replicas have it, %v", n, err)
		}
		if r := c.ReplicasOf(t, s); len(r) != 1 || masters[r[0]] != "" {
			t.Errorf("%s has replicas %v", s.Addr(), r)
		}
	}

	t.Run("failover by hand", func(t *testing.T) {
		old := c.MasterFor(t, "k")
		if now := c.Failover(t, "k"); now == old || now != c.MasterFor(t, "k") {
			t.Error("the master is the same")
		}
	})
	t.Run("slot moves", func(t *testing.T) {
		from := c.MasterFor(t, "k")
		var to *Server
		for s := range masters {
			if s := c.MasterFor(t, masters[s]); s != from {
				to = s
			}
		}
		if err := client.Set(ctx, "k", "moves", 0).Err(); err != nil {
			t.Fatal(err)
		}
		asked := false
		c.MoveSlot(t, "k", to, func() {
			asked = true
			if v, err := client.Get(ctx, "k").Result(); v != "moves" {
				t.Errorf("between: %q, %v", v, err)
			}
		})
		if !asked || c.MasterFor(t, "k") != to {
			t.Errorf("the slot did not move; asked: %v", asked)
		}
		for _, s := range c.Nodes() {
			v, err := c.view(ctx, s)
			if got := owner([]view{v}, c.Slot(t, "k")); got != c.ids[to] {
				t.Errorf("%s says the slot is with %s, %v", s.Addr(), got, err)
			}
		}
		if v, err := client.Get(ctx, "k").Result(); v != "moves" {
			t.Errorf("afterwards: %q, %v", v, err)
		}
	})
	t.Run("nodes that differ are not stable", func(t *testing.T) {
		var others []*Server
		for s := range masters {
			if s := c.MasterFor(t, masters[s]); s != c.MasterFor(t, "k") {
				others = append(others, s)
			}
		}
		for range 10 { // the owner corrects it with its next ping
			err := c.admin[others[0]].Do(ctx, "cluster", "setslot", c.Slot(t, "k"), "node", c.ids[others[1]]).Err()
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(c.unstable(), "two views") {
				c.AwaitStable(t)
				return
			}
		}
		t.Error("never seen")
	})
	t.Run("through proxies", func(t *testing.T) {
		proxies := c.Proxies(t)
		through := c.Client(t, func(o *redis.ClusterOptions) { o.Dialer = proxies.Dial })
		seen := proxies[c.MasterFor(t, "k").Addr()].Observe(Command("get"))
		if v, err := through.Get(ctx, "k").Result(); v != "moves" || seen.Count() != 1 {
			t.Errorf("got %q, %v; the proxy saw %d", v, err, seen.Count())
		}
	})
	t.Run("a master dies", func(t *testing.T) {
		old := c.MasterFor(t, "k")
		replicas := c.ReplicasOf(t, old)
		old.Kill(t)
		if c.MasterFor(t, "k") != old {
			t.Error("the dead master was replaced within no time")
		}
		now := c.AwaitFailover(t, "k", old)
		if !slices.Contains(replicas, now) {
			t.Errorf("%s took over", now.Addr())
		}
		old.Restart(t)
		c.AwaitStable(t)
		if r := c.ReplicasOf(t, now); !slices.Contains(r, old) {
			t.Errorf("the old master did not come back as a replica: %v", r)
		}
	})
	t.Run("a master hangs", func(t *testing.T) {
		old := c.MasterFor(t, "k")
		old.Stop(t)
		c.AwaitFailover(t, "k", old)
		old.Cont(t)
		c.AwaitStable(t)
	})
}
