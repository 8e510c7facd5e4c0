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

// swapReplies gives calls the answers to one another.
func swapReplies(on where, script string) fault {
	return chosen("replies to "+script+" swapped", on, script, func(p *redistest.Proxy, m redistest.Match) *redistest.Fault {
		return p.SwapReplies(m, redistest.Always())
	}, nil)
}
