package faults

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// failover is a master with a replica, under three sentinels. A lock counts when the
// replica has it, so that not even a master that dies takes one along.
func failover(tb testing.TB) *topology {
	s := redistest.StartSentinel(tb, 1)
	top := &topology{name: "failover", members: 1, servers: s.Servers()}
	top.addresses, top.wires = detoured(tb, "failover", s.Servers(), s.Addrs())
	for i := range top.addresses {
		top.addresses[i].Master, top.addresses[i].Replicas = s.MasterName(), 1
	}
	top.faults = append(top.faults,
		nothing(),
		killConnections(func(*nemesis) links { return top.wires.all() }),
		fault{name: "master killed", long: many, inject: func(n *nemesis) int {
			old := s.Master(n.tb)
			n.crew.holder()
			old.Kill(n.tb)
			s.AwaitFailover(n.tb, old)
			old.Restart(n.tb)
			s.AwaitStable(n.tb)
			return 1
		}},
		fault{name: "SENTINEL FAILOVER", long: many, inject: func(n *nemesis) int {
			n.crew.holder()
			s.Failover(n.tb)
			s.AwaitStable(n.tb)
			return 1
		}},
	)
	top.faults = append(top.faults, ofWorkers()...)
	return top
}
