package faults

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// quorum is three masters that know nothing of each other. The nemesis leaves a
// majority in peace, unless it only cuts connections.
func quorum(tb testing.TB) *topology {
	top := &topology{name: "quorum", members: 3}
	for range top.members {
		top.servers = append(top.servers, redistest.Start(tb, persistent...))
	}
	top.addresses, top.wires = direct(tb, "quorum", top.servers)
	all := func(*nemesis) links { return top.wires.all() }
	member := func(n *nemesis) *redistest.Server { return top.servers[n.random.IntN(len(top.servers))] }
	ofMember := func(n *nemesis) links { return top.wires.ofServer(top.index(member(n))) }
	top.faults = append(top.faults,
		nothing(),
		killConnections(all),
		dropReply(ofMember, "acquire"), dropReply(ofMember, "renew"), dropReply(ofMember, "release"),
		deliverLate(ofMember, "acquire"), deliverLate(ofMember, "release"),
		blackHole("a member silent, short", ofMember, lease*4/10),
		blackHole("a member silent, long", ofMember, lease*14/10),
		answeredByProxy(ofMember, "acquire"), answeredByProxy(ofMember, "release"),
		swapReplies(ofMember, "acquire or renew or release"),
		latency(ofMember),
		stopServer("a member stopped", member, lease*14/10),
		restart("a member restarted", member),
		flushScripts("scripts flushed", member),
		overload(member),
	)
	top.faults = append(top.faults, ofWorkers()...)
	return top
}
