package faults

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// cluster is three masters with a replica each. A silent master is left alone for
// long: a failover that nobody has agreed on may lose locks, as documented.
func cluster(tb testing.TB) *topology {
	c := redistest.StartCluster(tb, 3, 1, "--cluster-node-timeout", "15000")
	top := &topology{name: "cluster", members: 1, servers: c.Nodes()}
	top.addresses, top.wires = detoured(tb, "cluster", c.Nodes(), c.Addrs())
	all := func(*nemesis) links { return top.wires.all() }
	master := func(n *nemesis) *redistest.Server { return c.MasterFor(n.tb, lockName(n.key())) }
	shard := func(n *nemesis) links { return top.wires.ofServer(top.index(master(n))) }
	failovers := 0
	top.faults = append(top.faults,
		nothing(),
		killConnections(all),
		dropReply(all, "acquire"), dropReply(all, "renew"), dropReply(all, "release"),
		answeredByProxy(all, "acquire"), answeredByProxy(all, "renew"), answeredByProxy(all, "release"),
		swapReplies(all, "acquire or renew or release"),
		blackHole("a shard silent", shard, lease*14/10),
		stopServer("a master stopped", master, lease*14/10),
		flushScripts("scripts flushed", master),
		overload(master),
		fault{name: "failover, planned", inject: func(n *nemesis) int {
			// In turn: a shard that has just failed over has to wait until it may again.
			failovers++
			c.Failover(n.tb, lockName(keys[failovers%len(keys)]))
			return 1
		}},
		fault{name: "slot moved", inject: func(n *nemesis) int {
			key := n.key()
			from := c.MasterFor(n.tb, lockName(key))
			for i := 0; ; i++ {
				if to := c.MasterFor(n.tb, string(rune('a'+i))); to != from {
					c.MoveSlot(n.tb, lockName(key), to, func() { n.pause(50 * time.Millisecond) })
					return 1
				}
			}
		}},
	)
	top.faults = append(top.faults, ofWorkers()...)
	return top
}

// lockName is the name of a key's lock in Redis.
func lockName(key string) string { return "lock:" + key }
