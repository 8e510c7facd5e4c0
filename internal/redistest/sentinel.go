package redistest

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

const (
	watchers      = 3
	watcherQuorum = 2
	watchedName   = "mymaster"
)

// Sentinel is a Redis with replicas, watched by three Redis Sentinels of which
// two have to agree that the master is down. All are real processes on loopback
// ports. Its methods may be called from the goroutine of the test only.
type Sentinel struct {
	servers  []*Server
	watchers []*watcher
	admin    map[*Server]*redis.Client // one connection to each server
}

// StartSentinel runs a master with n replicas, and three sentinels; the arguments
// are for the servers. It returns when every replica is in step with the master,
// and every sentinel knows all the others.
//
// After half a second of silence a master counts as down, and it takes about two
// more until another is in its place. A replica may take over unless it has been
// without its master for five seconds. All end with the test; without
// redis-server it skips or fails as Start does.
func StartSentinel(tb testing.TB, replicas int, args ...string) *Sentinel {
	tb.Helper()
	s := &Sentinel{admin: map[*Server]*redis.Client{}}
	for i := range 1 + replicas {
		all := args
		if i > 0 {
			all = append([]string{"--replicaof", "127.0.0.1", fmt.Sprint(s.servers[0].port)}, args...)
		}
		server := Start(tb, all...)
		s.servers = append(s.servers, server)
		s.admin[server] = server.Client(tb, quiet)
		if p := server.password(); p != "" { // any of them may have to follow another
			if err := s.admin[server].ConfigSet(context.Background(), "masterauth", p).Err(); err != nil {
				tb.Fatalf("starting a replica: %v", err)
			}
		}
	}
	// The sentinels look at the master's replicas as soon as they run.
	why := ""
	if !poll(patience, func() bool { why = s.following(s.servers[0]); return why == "" }) {
		tb.Fatalf("the replicas do not get in step: %s", why)
	}
	for i := range watchers {
		w, err := s.watch(tb, i)
		if err != nil {
			tb.Fatalf("starting a sentinel: %v", err)
		}
		s.watchers = append(s.watchers, w)
	}
	s.AwaitStable(tb)
	return s
}

// MasterName is what the sentinels call the master.
func (s *Sentinel) MasterName() string { return watchedName }

// Addrs returns the addresses of the sentinels.
func (s *Sentinel) Addrs() []string {
	var out []string
	for _, w := range s.watchers {
		out = append(out, w.Addr())
	}
	return out
}

// Servers returns the master and the replicas, dead or alive: first the one that
// began as the master.
func (s *Sentinel) Servers() []*Server { return s.servers }

// Master returns the server that all sentinels name as the master. It may be
// dead, until a failover.
func (s *Sentinel) Master(tb testing.TB) *Server {
	tb.Helper()
	var master *Server
	var why string
	if !poll(patience, func() bool { master, why = s.named(); return master != nil }) {
		tb.Fatalf("the sentinels do not agree on a master: %s", why)
	}
	return master
}

// Replicas returns the running servers that say that they follow the master.
func (s *Sentinel) Replicas(tb testing.TB) []*Server {
	tb.Helper()
	master := s.Master(tb)
	var out []*Server
	for _, server := range s.servers {
		if server != master && server.Running() && s.follows(server, master) {
			out = append(out, server)
		}
	}
	return out
}

// Client returns a failover client with go-redis's own defaults, closed at the
// end of the test.
func (s *Sentinel) Client(tb testing.TB, configure ...func(*redis.FailoverOptions)) *redis.Client {
	tb.Helper()
	options := &redis.FailoverOptions{
		MasterName: watchedName, SentinelAddrs: s.Addrs(), Password: s.servers[0].password(),
	}
	for _, f := range configure {
		f(options)
	}
	client := redis.NewFailoverClient(options)
	tb.Cleanup(func() { _ = client.Close() }) // the test may have closed it
	return client
}

// Failover has the sentinels replace the running master, without its consent, and
// returns the new one as AwaitFailover does. For about a second more the old one
// takes writes that nobody will ever see, then it becomes a replica: see
// AwaitStable.
func (s *Sentinel) Failover(tb testing.TB) *Server {
	tb.Helper()
	old := s.Master(tb)
	var err error
	if !poll(patience, func() bool {
		// -NOGOODSLAVE until it has heard from the replicas, -INPROG after a
		// reply that was lost.
		err = s.watchers[0].client.Failover(context.Background(), watchedName).Err()
		return err == nil || redis.HasErrorPrefix(err, "INPROG")
	}) {
		tb.Fatalf("failover: %v", err)
	}
	return s.AwaitFailover(tb, old)
}

// AwaitFailover returns the new master when it is no longer old, all sentinels
// name it, and it takes writes. Call it after old was stopped or killed.
func (s *Sentinel) AwaitFailover(tb testing.TB, old *Server) *Server {
	tb.Helper()
	var master *Server
	var why string
	if !poll(2*patience, func() bool {
		master, why = s.named()
		return master != nil && master != old && s.replication(master)["role"] == "master"
	}) {
		tb.Fatalf("no failover: %s%s", why, s.story())
	}
	return master
}

// AwaitStable returns when all sentinels name a master that takes writes, every
// other running server is a replica in step with it, and every sentinel knows
// these and the other sentinels.
func (s *Sentinel) AwaitStable(tb testing.TB) {
	tb.Helper()
	why := ""
	if !poll(2*patience, func() bool { why = s.unstable(); return why == "" }) {
		tb.Fatalf("the sentinels and servers do not become stable: %s%s", why, s.story())
	}
}

// story is what the sentinels have said of late.
func (s *Sentinel) story() (story string) {
	const most = 4000
	for _, w := range s.watchers {
		w.mu.Lock()
		said := w.process.output()
		w.mu.Unlock()
		story += "\n" + w.Addr() + ": …" + said[max(0, len(said)-most):]
	}
	return story
}

// CutReplication keeps from the replicas what is written from now on, while the
// sentinels find nothing wrong and would promote one of them, for five seconds.
// It returns when the master has no replica left. It ends with a failover, but
// this server cannot feed replicas again before it is restarted.
func (s *Sentinel) CutReplication(tb testing.TB) {
	tb.Helper()
	ctx := context.Background()
	master := s.admin[s.Master(tb)]
	// Without the permission a replica that comes back learns nothing, again and
	// again. The connection that it has does not need it any more.
	if err := master.Do(ctx, "acl", "setuser", "default", "-psync", "-sync").Err(); err != nil {
		tb.Fatalf("cutting the replication: %v", err)
	}
	if err := master.Do(ctx, "client", "kill", "type", "replica").Err(); err != nil {
		tb.Fatalf("cutting the replication: %v", err)
	}
	Await(tb, patience, "the master to have no replica", func() bool {
		return info(master)["connected_slaves"] == "0"
	})
}

// KeepOldMaster keeps the present master from being demoted: after a failover it
// goes on taking writes, as one does that is cut off together with some clients.
func (s *Sentinel) KeepOldMaster(tb testing.TB) {
	tb.Helper()
	master := s.admin[s.Master(tb)]
	if err := master.Do(context.Background(), "acl", "setuser", "default", "-replicaof", "-slaveof").Err(); err != nil {
		tb.Fatalf("keeping the old master: %v", err)
	}
}

// Proxies puts a proxy before every server and every sentinel. A client goes
// through them when its Dialer is the method Dial of the result.
func (s *Sentinel) Proxies(tb testing.TB) Proxies {
	tb.Helper()
	out := Proxies{}
	for _, server := range s.servers {
		out[server.Addr()] = server.Proxy(tb)
	}
	for _, w := range s.watchers {
		out[w.Addr()] = w.Proxy(tb)
	}
	return out
}
