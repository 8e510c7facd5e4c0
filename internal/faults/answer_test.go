package faults

import (
	"math/rand/v2"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Faults by which a call gets an answer that is not the one to what it has asked.

// ofProxies are answers of proxies that have sent a request to Redis, and have then lost their
// patience or their connection.
var ofProxies = []string{
	"ERR Connection timed out", "ERR Connection reset by peer", "upstream failure", "ERR the backend has closed the connection",
	"ERR read tcp: i/o timeout", "PROXY_TIMEOUT",
}

// answeredByProxy has Redis execute what the script does, and the proxy answers with an error of its
// own.
func answeredByProxy(on where, script string) fault {
	return chosen(script+" answered by a proxy", on, script, func(p *redistest.Proxy, m redistest.Match) *redistest.Fault {
		return p.ReplaceReply(m, "-"+ofProxies[rand.IntN(len(ofProxies))]+"\r\n", redistest.Always())
	}, nil)
}

// inPassing are errors with which Redis says that it has done nothing, and that it will in a moment.
var inPassing = []string{
	"READONLY You can't write against a read only replica.", "LOADING Redis is loading the dataset in memory",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "CLUSTERDOWN The cluster is down",
}

// refusedInPassing has Redis refuse everything, for much less than a call may take.
func refusedInPassing(on where) fault {
	return fault{name: "refused in passing", answers: true, inject: func(n *nemesis) (met int) {
		for _, text := range inPassing {
			var armed []*redistest.Fault
			for _, p := range on(n) {
				armed = append(armed, p.Answer(redistest.Command("eval", "evalsha"), "-"+text+"\r\n", redistest.Always()))
			}
			n.pause(lease / 20)
			for _, a := range armed {
				a.Disarm()
				met += a.Count()
			}
			n.pause(lease / 2)
		}
		return met
	}}
}

// swapReplies gives calls the answers to one another.
func swapReplies(on where, script string) fault {
	return chosen("replies to "+script+" swapped", on, script, func(p *redistest.Proxy, m redistest.Match) *redistest.Fault {
		return p.SwapReplies(m, redistest.Always())
	}, nil)
}
