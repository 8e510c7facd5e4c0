package faults

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// topology is a Redis to hurt, and the ways to hurt it.
type topology struct {
	name      string
	members   int       // of the quorum; 1 without one
	addresses []address // for each worker
	servers   []*redistest.Server
	wires     wires
	faults    []fault
	tasks     bool // are what the crew does
}

// topologies are those of a run, in the order of a long one, where each has the
// machine for itself.
var topologies = []struct {
	name  string
	start func(testing.TB) *topology
	until float64 // the part of a long run after which it ends: single has most faults
}{
	{"single", single, 0.3},
	{"cluster", cluster, 0.5},
	{"quorum", quorum, 0.7},
	{"failover", failover, 0.87},
	{"tasks", keepOne, 1},
}

// fault is one thing that the nemesis does.
type fault struct {
	name string
	// inject does it, heals it, and returns how many times it has taken place.
	inject func(n *nemesis) int
	// calm says that it is none: most locks must outlast their lease.
	calm bool
	// answers says that Redis answers all the time: no call fails, and no lock is lost.
	answers bool
	// lease of the locks while it is there; 0 for the usual one.
	lease time.Duration
	// long is how many of the holds last long, in per cent; 0 for a few.
	long int
	// within is how soon each lock must be free for somebody else in a long run; 0 for
	// lease + stuckAfter.
	within time.Duration
}

// persistent keeps all that Redis has acknowledged, whatever happens to it.
var persistent = []string{"--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "1mb"}

// direct are addresses of servers, for each worker through proxies of its own. Those of the last
// one speak TLS.
func direct(tb testing.TB, kind string, servers []*redistest.Server) (addresses []address, w wires) {
	for i := range workers {
		a := address{Kind: kind}
		var own []*redistest.Proxy
		for _, s := range servers {
			start := s.Proxy
			if i == workers-1 {
				start = s.EncryptedProxy
			}
			p := start(tb)
			own = append(own, p)
			a.Addrs, a.Certificate = append(a.Addrs, p.Addr()), p.Certificate()
		}
		addresses = append(addresses, a)
		w = append(w, own)
	}
	return addresses, w
}

// detoured are addresses of servers that Redis itself announces, and proxies of
// each worker that stand before them.
func detoured(tb testing.TB, kind string, servers []*redistest.Server, known []string) (addresses []address, w wires) {
	for range workers {
		a := address{Kind: kind, Addrs: known, Detour: map[string]string{}}
		var own []*redistest.Proxy
		for _, s := range servers {
			p := s.Proxy(tb)
			own = append(own, p)
			a.Detour[s.Addr()] = p.Addr()
		}
		addresses = append(addresses, a)
		w = append(w, own)
	}
	return addresses, w
}
