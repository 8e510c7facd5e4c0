package faults

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// furthestBack is how far the clock of Redis is set back at once, at most.
const furthestBack = 3 * time.Second

// keepOne is one Redis that persists every write, and workers that run asynq's tasks under KeepOne.
func keepOne(tb testing.TB) *topology {
	server, clock := redistest.StartWithClock(tb, persistent...)
	top := &topology{name: "tasks", members: 1, servers: []*redistest.Server{server}, tasks: true}
	top.addresses, top.wires = direct(tb, "single", top.servers)
	all := func(*nemesis) links { return top.wires.all() }
	one := func(*nemesis) *redistest.Server { return server }
	top.faults = append(top.faults,
		nothing(),
		killConnections(all),
		dropReply(all, "acquire"), dropReply(all, "release"), dropReply(all, "hand_over"),
		dropRequest(all, "acquire"), dropRequest(all, "release"), dropRequest(all, "hand_over"),
		latency(all),
		stopServer("Redis stopped, short", one, lease*4/10),
		stopServer("Redis stopped, long", one, lease*14/10),
		restart("Redis restarted", one),
		fault{name: "tasks given again", inject: func(n *nemesis) (given int) {
			client := admin(server)
			defer client.Close()
			for range 3 {
				n.crew.holder()
				given += n.giveAgain(client, n.random.IntN(workers))
			}
			return given
		}},
		fault{name: "worker stopped, its tasks given again", inject: func(n *nemesis) int {
			client := admin(server)
			defer client.Close()
			i := n.crew.holder()
			p := n.crew.members[i]
			p.stop(n.tb)
			n.pause(lease * 14 / 10)
			given := n.giveAgain(client, (i+1)%workers)
			n.pause(lease)
			p.cont(n.tb)
			return given
		}},
	)
	top.faults = append(top.faults, ofWorkers()[:2]...)
	top.faults = append(top.faults, fault{name: "worker killed", inject: func(n *nemesis) int {
		n.crew.restart(n.crew.holder())
		return 1
	}})
	if clock != nil {
		top.faults = append(top.faults, fault{name: "clock set back", inject: func(n *nemesis) int {
			for range 3 {
				n.crew.holder()
				clock.SetBack(n.tb, time.Duration(n.random.Int64N(int64(furthestBack))))
				n.pause(lease / 2)
			}
			return 3
		}})
	}
	return top
}

// restart kills a worker and starts another one.
func (c *crew) restart(i int) {
	at := now()
	c.members[i].kill()
	c.history.tasks.killed(i, at)
	c.start(i)
}
