package redistest

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestSentinel(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, 2)
	client := s.Client(t)
	set := func(value string) {
		t.Helper()
		if err := client.Set(ctx, "k", value, 0).Err(); err != nil {
			t.Errorf("writing %s: %v", value, err)
		}
	}
	if len(s.Addrs()) != 3 || len(s.Servers()) != 3 || s.Master(t) != s.Servers()[0] {
		t.Fatalf("%d sentinels, %d servers, the master is %s", len(s.Addrs()), len(s.Servers()), s.Master(t).Addr())
	}
	if r := s.Replicas(t); len(r) != 2 || r[0] == s.Master(t) || r[1] == s.Master(t) {
		t.Fatalf("replicas %v", r)
	}
	set("first")
	expect(t, s.Master(t), "k", "first")

	t.Run("failover by hand", func(t *testing.T) {
		old := s.Master(t)
		now := s.Failover(t)
		if now == old || now != s.Master(t) || !now.Running() {
			t.Error("the master is the same")
		}
		if n, err := now.Client(t).Exists(ctx, "k").Result(); n != 1 || err != nil {
			t.Errorf("the new master has the key %d times, %v", n, err)
		}
		s.AwaitStable(t)
		if err := old.Client(t, quiet).Set(ctx, "k", "lost", 0).Err(); !redis.IsReadOnlyError(err) {
			t.Errorf("the old master answers a write with %v", err)
		}
		set("second")
		expect(t, now, "k", "second")
	})
	t.Run("replication is cut", func(t *testing.T) {
		old := s.Master(t)
		s.CutReplication(t)
		set("unknown to the replicas")
		expect(t, old, "k", "unknown to the replicas")
		old.Kill(t)
		now := s.AwaitFailover(t, old)
		expect(t, now, "k", "second")
		old.Restart(t)
		s.AwaitStable(t)
		expect(t, old, "k", "second")
		if r := s.Replicas(t); len(r) != 2 {
			t.Errorf("the old master did not come back as a replica: %v", r)
		}
	})
	t.Run("a master hangs", func(t *testing.T) {
		old := s.Master(t)
		set("third")
		old.Stop(t)
		if s.Master(t) != old {
			t.Error("the silent master was replaced within no time")
		}
		s.AwaitFailover(t, old)
		old.Cont(t)
		s.AwaitStable(t)
	})
	t.Run("through proxies", func(t *testing.T) {
		proxies := s.Proxies(t)
		through := s.Client(t, func(o *redis.FailoverOptions) { o.Dialer = proxies.Dial })
		seen := proxies[s.Master(t).Addr()].Observe(Command("get"))
		if v, err := through.Get(ctx, "k").Result(); v != "third" || seen.Count() != 1 {
			t.Errorf("got %q, %v; the proxy saw %d", v, err, seen.Count())
		}
		asked := 0
		for _, addr := range s.Addrs() {
			asked += proxies[addr].Connections()
		}
		if asked == 0 {
			t.Error("the sentinels were asked past their proxies")
		}
	})
}

func TestSentinelWithPassword(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, 1, "--requirepass", "secret")
	if err := s.Client(t).Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Error(err)
	}
	old := s.Master(t)
	if now := s.Failover(t); now == old {
		t.Error("the master is the same")
	}
	s.AwaitStable(t)
}

func TestSentinelKeepsAnOldMaster(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, 1)
	old := s.Master(t)
	s.KeepOldMaster(t)
	s.Failover(t)
	// A sentinel that has tried to demote it has been refused.
	client := old.Client(t, quiet)
	Await(t, patience, "an attempt to demote it", func() bool {
		stats, err := client.Info(ctx, "errorstats").Result()
		return err == nil && strings.Contains(stats, "errorstat_NOPERM")
	})
	if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Errorf("it refuses a write: %v", err)
	}
}
