//go:build go1.25

package redistest

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Proxy stands between clients and one Redis, and does to their connections
// what a network does: it understands enough of the protocol, RESP2 and RESP3,
// to lose a chosen request or reply. Without a fault it changes nothing.
//
// A connection to the proxy is a connection to Redis: when either side closes,
// so does the other. CLIENT REPLY is not supported.
type Proxy struct {
	addr, target, password string

	identity *identity // of a server that speaks TLS; nil: this one does not

	wg sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while it refuses
	closed   bool
	black    bool
	latency  time.Duration
	links    map[*link]struct{}
	faults   []*Fault
	messages func(message []byte) (delays []time.Duration)
}

// NewProxy starts a proxy before the Redis at target ("host:port"). It ends,
// with all its connections and goroutines, at the end of the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p, err := OpenProxy(target)
	if err != nil {
		tb.Fatalf("proxy: %v", err)
	}
	tb.Cleanup(p.Close)
	return p
}

// OpenProxy is NewProxy for a program without a test: the caller must Close it.
func OpenProxy(target string) (*Proxy, error) {
	p := &Proxy{target: target, links: map[*link]struct{}{}}
	if err := p.listen("127.0.0.1:0"); err != nil {
		return nil, err
	}
	p.addr = p.listener.Addr().String()
	return p, nil
}

// Addr is the host:port that clients connect to.
func (p *Proxy) Addr() string { return p.addr }

// Client returns a client of Redis through the proxy, with go-redis's own
// defaults, closed at the end of the test.
func (p *Proxy) Client(tb testing.TB, configure ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	return newClient(tb, p.Addr(), p.password, append(p.trusting(), configure...))
}

// DropReply has Redis execute the next request that matches, swallows its reply
// and closes the connection: the client sees EOF after the replies before it.
// Of a pipeline's later requests Redis may execute some. A NOSCRIPT reply passes
// and does not count, for nothing was executed.
func (p *Proxy) DropReply(match Match, opts ...FaultOption) *Fault {
	return p.arm(dropReply, match, "", opts)
}

// HangReply is DropReply without the close: the reply and everything after it
// never comes, while the connection stays open and further requests on it are
// delivered.
func (p *Proxy) HangReply(match Match, opts ...FaultOption) *Fault {
	return p.arm(hangReply, match, "", opts)
}

// ReplaceReply has Redis execute the next request that matches, and gives the
// client another reply, written as on the wire ("-LOADING busy\r\n"). NOSCRIPT
// passes as for DropReply.
func (p *Proxy) ReplaceReply(match Match, reply string, opts ...FaultOption) *Fault {
	return p.arm(replaceReply, match, reply, opts)
}

// SwapReplies has Redis execute requests that match, two by default, and gives each of two the
// reply to the other one: to the next that matches, on the same connection or another. Until
// then, or Disarm, the first reply is kept, and whatever comes after it on its connection. It has
// happened with the second one. NOSCRIPT passes as for DropReply.
func (p *Proxy) SwapReplies(match Match, opts ...FaultOption) *Fault {
	return p.arm(swapReplies, match, "", append([]FaultOption{Times(2)}, opts...))
}

// DropRequest swallows the next request that matches, and all that follows on
// its connection, before Redis sees them, and closes the connection.
func (p *Proxy) DropRequest(match Match, opts ...FaultOption) *Fault {
	return p.arm(dropRequest, match, "", opts)
}

// Answer answers the next request that matches in the place of Redis, which
// never sees it. The reply is written as on the wire.
func (p *Proxy) Answer(match Match, reply string, opts ...FaultOption) *Fault {
	return p.arm(answer, match, reply, opts)
}

// HoldRequest keeps back the next request that matches, and all that follows on
// its connection, until Release delivers them: also when the client has closed
// the connection meanwhile, as a network may deliver late what was sent before.
func (p *Proxy) HoldRequest(match Match, opts ...FaultOption) *Fault {
	return p.arm(hold, match, "", opts)
}

// Messages decides what becomes of messages to subscribers from now on: fate is called with
// each of them, as on the wire, and returns by how much each copy of it is delayed; with no
// copy it is lost. What follows on the connection waits for it. It must not call the
// proxy. nil lets them pass.
func (p *Proxy) Messages(fate func(message []byte) (delays []time.Duration)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = fate
}

// Observe counts the requests that match, and changes nothing.
func (p *Proxy) Observe(match Match) *Fault {
	return p.arm(observe, match, "", []FaultOption{Always()})
}

func (p *Proxy) arm(a action, match Match, reply string, opts []FaultOption) *Fault {
	f := &Fault{
		proxy: p, match: match, action: a, reply: []byte(reply), left: 1,
		happened: make(chan struct{}), released: make(chan struct{}),
	}
	for _, o := range opts {
		o(f)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return f
}

// KillConnections closes the open connections, on both sides and with whatever
// is under way on them. With names of commands it closes only those on which
// one of them was sent ("subscribe"). It returns how many it closed.
func (p *Proxy) KillConnections(commands ...string) int {
	chosen := p.chosen(commands)
	for _, l := range chosen {
		l.kill()
	}
	return len(chosen)
}

// BlackHole true swallows whatever is sent on open connections and on new ones,
// in both directions, while they stay open: nothing is answered, not even a
// close by Redis. After false new connections work; those that were open in
// between stay silent, for a stream with a gap is none, until the client closes
// them or KillConnections does.
func (p *Proxy) BlackHole(on bool) {
	p.mu.Lock()
	p.black = on
	p.mu.Unlock()
	if on {
		p.BlackHoleConnections()
	}
}

// BlackHoleConnections does to open connections, and for good, what BlackHole
// does to all. The choice and the result are those of KillConnections.
func (p *Proxy) BlackHoleConnections(commands ...string) int {
	chosen := p.chosen(commands)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range chosen {
		l.silence()
	}
	return len(chosen)
}

// Refuse true closes the port: a new connection is refused, open ones go on.
// Refuse false opens it again.
func (p *Proxy) Refuse(tb testing.TB, on bool) {
	tb.Helper()
	p.mu.Lock()
	listener := p.listener
	if on {
		p.listener = nil
	}
	p.mu.Unlock()
	switch {
	case on && listener != nil:
		_ = listener.Close()
	case !on && listener == nil:
		var err error
		if !poll(patience, func() bool { err = p.listen(p.addr); return err == nil }) {
			tb.Errorf("proxy: opening the port again: %v", err)
		}
	}
}

// Latency delays everything that goes through by d, in each direction: a round
// trip takes 2d longer.
func (p *Proxy) Latency(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = d
}

// Connections is how many connections there are through the proxy. One counts
// until both sides have closed it.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Close ends the proxy and returns when nothing of it is left. What is still
// held is never delivered.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	if p.listener != nil {
		_ = p.listener.Close()
	}
	p.mu.Unlock()
	p.KillConnections()
	p.wg.Wait()
}

// listen opens the port and serves it.
func (p *Proxy) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return l.Close()
	}
	p.listener = l
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(conn.(*net.TCPConn)) })
		}
	})
	return nil
}

// serve runs one connection to its end.
func (p *Proxy) serve(client *net.TCPConn) {
	l := newLink(p, client)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		_ = client.Close()
		return
	}
	p.links[l] = struct{}{}
	if p.black {
		l.silence()
	}
	p.mu.Unlock()
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// chosen returns the connections on which one of the commands was sent, or all.
func (p *Proxy) chosen(commands []string) []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*link
	for l := range p.links {
		if len(commands) == 0 || slices.ContainsFunc(commands, func(c string) bool { return l.sent[strings.ToLower(c)] }) {
			out = append(out, l)
		}
	}
	return out
}
