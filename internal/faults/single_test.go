package faults

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// single is one Redis that persists every write.
func single(tb testing.TB) *topology {
	server := redistest.Start(tb, persistent...)
	top := &topology{name: "single", members: 1, servers: []*redistest.Server{server}}
	top.addresses, top.wires = direct(tb, "single", top.servers)
	all := func(*nemesis) links { return top.wires.all() }
	one := func(*nemesis) *redistest.Server { return server }
	top.faults = append(top.faults,
		nothing(),
		killConnections(all),
		dropReply(all, "acquire"), dropReply(all, "renew"), dropReply(all, "release"),
		dropRequest(all, "acquire"), dropRequest(all, "renew"), dropRequest(all, "release"),
		deliverLate(all, "acquire"), deliverLate(all, "renew"), deliverLate(all, "release"),
		blackHole("black hole, short", all, lease*4/10),
		blackHole("black hole, long", all, lease*14/10),
		answeredByProxy(all, "acquire"), answeredByProxy(all, "renew"), answeredByProxy(all, "release"),
		swapReplies(all, "acquire"), swapReplies(all, "acquire or renew or release"),
		refusedInPassing(all),
		latency(all),
		slowThenSilent(),
		stopServer("Redis stopped, short", one, lease*4/10),
		stopServer("Redis stopped, long", one, lease*14/10),
		restart("Redis restarted", one),
		flushScripts("scripts flushed", one),
		overload(one),
	)
	top.faults = append(top.faults, deadConnections(one)...)
	top.faults = append(top.faults, grantMessages(all)...)
	top.faults = append(top.faults, ofWorkers()...)
	return top
}

// ofWorkers are the faults that have nothing to do with how Redis is set up.
func ofWorkers() []fault {
	return []fault{
		blackHole("one worker cut off", func(n *nemesis) links { return n.top.wires.ofWorker(n.crew.holder()) }, lease*14/10),
		{name: "worker stopped", long: many, inject: func(n *nemesis) int {
			p := n.crew.members[n.crew.holder()]
			p.stop(n.tb)
			n.pause(lease * 14 / 10)
			p.cont(n.tb)
			return 1
		}},
		{name: "worker killed", long: many, inject: func(n *nemesis) int {
			i := n.crew.holder()
			n.crew.members[i].kill()
			n.crew.start(i)
			n.crew.members[i].send(work(fault{long: many}))
			return 1
		}},
	}
}

// slowThenSilent lets the answers to one worker take long, and then come no more: it
// must count its lease from when it has asked, not from when it was answered.
func slowThenSilent() fault {
	return fault{name: "one worker slow, then cut off", long: many, inject: func(n *nemesis) int {
		l := n.top.wires.ofWorker(n.crew.holder())
		l.latency(lease / 8)
		n.pause(lease * 6 / 10)
		l.blackHole(true)
		n.pause(lease * 14 / 10)
		l.blackHole(false)
		l.latency(0)
		return len(l)
	}}
}
