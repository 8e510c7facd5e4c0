//go:build go1.25

package redistest

import (
	"bufio"
	"net"
	"strings"
	"sync"
	"time"
)

// exchange is a request on its way and the reply it will get.
type exchange struct {
	name     string // the command, in lower case
	request  []string
	fault    *Fault        // what happens to it, or nil
	unsent   bool          // Redis never sees it
	confirms int           // for (un)subscribing: how many confirmations it gets
	done     chan struct{} // closed when it was answered, or never will be
}

// link is one client's connection and the connection to Redis that belongs to
// it. Each direction is read by one goroutine and written by another (outbox),
// so that a side which does not read stops nobody else.
type link struct {
	proxy    *Proxy
	tcp      *net.TCPConn // of the client
	client   stream       // by that, which TLS may be inside of
	toClient *outbox
	toRedis  *outbox
	dead     chan struct{} // closed by kill

	// Guarded by proxy.mu.
	redis      *net.TCPConn // and client, once run has begun
	killed     bool
	sent       map[string]bool // commands seen
	queue      []*exchange     // requests that Redis has not answered, oldest first
	subscribed bool            // it has (un)subscribed at least once
	gone       bool            // Redis will answer no more
	deaf       bool            // requests are swallowed
	mute       bool            // replies are swallowed
}

func newLink(p *Proxy, tcp *net.TCPConn) *link {
	dead := make(chan struct{})
	return &link{
		proxy: p, tcp: tcp, client: p.streamOf(tcp), dead: dead, sent: map[string]bool{},
		toClient: newOutbox(dead), toRedis: newOutbox(dead),
	}
}

// run serves the connection until both sides are done, or it is killed.
func (l *link) run() {
	defer l.kill()
	conn, err := net.DialTimeout("tcp", l.proxy.target, patience)
	if err != nil {
		l.proxy.mu.Lock()
		silent := l.mute
		l.proxy.mu.Unlock()
		if silent {
			l.requests()
		}
		return
	}
	l.proxy.mu.Lock()
	l.redis = conn.(*net.TCPConn)
	killed := l.killed
	l.proxy.mu.Unlock()
	if killed {
		_ = conn.Close()
		return
	}
	var readers, writers sync.WaitGroup
	writers.Go(func() { l.toRedis.drain(l.redis) })
	writers.Go(func() { l.toClient.drain(l.client) })
	readers.Go(l.requests)
	readers.Go(l.replies)
	readers.Wait()
	l.kill() // nobody is left to read what the writers still have
	writers.Wait()
}

// requests reads what the client sends. When the client has closed, Redis is
// told so after what came before.
func (l *link) requests() {
	defer l.toRedis.close()
	r := bufio.NewReader(l.client)
	for {
		raw, args, err := readRequest(r)
		if err != nil {
			return
		}
		if len(args) > 0 {
			l.request(raw, args)
		}
	}
}

// request decides what becomes of a request.
func (l *link) request(raw []byte, args []string) {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.deaf || l.gone {
		return
	}
	e := &exchange{name: strings.ToLower(args[0]), request: args, done: make(chan struct{})}
	if strings.HasSuffix(e.name, "subscribe") {
		e.confirms = max(1, len(args)-1)
		l.subscribed = true
	}
	l.sent[e.name] = true
	p.choose(e)

	out := &packet{raw: raw, due: p.due()}
	if f := e.fault; f != nil {
		switch f.action {
		case dropRequest:
			e.unsent, l.deaf = true, true
		case answer:
			e.unsent = true
		case hold:
			f.note(args)
			f.held = append(f.held, e)
			out.hold = f.released
		}
	}
	l.queue = append(l.queue, e)
	if !e.unsent {
		l.toRedis.put(out)
	}
	l.settleUnsent()
}

// replies reads what Redis sends. When Redis has closed, the client is told so,
// unless it is to hear nothing.
func (l *link) replies() {
	r := bufio.NewReader(l.redis)
	for {
		reply, err := readReply(r)
		l.proxy.mu.Lock()
		if err != nil {
			l.abandon()
			if !l.mute {
				l.toClient.close()
			}
			l.proxy.mu.Unlock()
			return
		}
		l.reply(reply)
		l.settleUnsent()
		l.proxy.mu.Unlock()
	}
}

// reply decides what becomes of a reply. The caller holds proxy.mu.
func (l *link) reply(r reply) {
	e := l.answered(r)
	out := &packet{raw: r.raw, due: l.proxy.due()}
	if e != nil && e.fault != nil && !l.mute {
		switch f := e.fault; {
		case r.kind == '-' && strings.HasPrefix(r.text, "NOSCRIPT"):
			f.giveBack()
		case f.action == dropReply:
			f.note(e.request)
			l.hangUp()
		case f.action == hangReply:
			f.note(e.request)
			l.mute = true
		case f.action == replaceReply:
			f.note(e.request)
			out.raw = f.reply
		case f.action == swapReplies:
			f.swap(out, e.request)
		}
	}
	if l.mute {
		return
	}
	if e != nil || l.proxy.messages == nil {
		l.toClient.put(out)
		return
	}
	for _, d := range l.proxy.messages(r.raw) {
		l.toClient.put(&packet{raw: r.raw, due: out.due.Add(d)})
	}
}

// answered returns the request that a reply belongs to and takes it from the
// queue, or nil for a message that no request waits for. The caller holds proxy.mu.
func (l *link) answered(r reply) *exchange {
	if r.kind == '>' || l.subscribed && r.kind == '*' && isPush[r.text] {
		if len(l.queue) == 0 || l.queue[0].name != r.text {
			return nil
		}
		if e := l.queue[0]; e.confirms > 1 {
			e.confirms--
			return e
		}
	}
	if len(l.queue) == 0 {
		return nil
	}
	e := l.queue[0]
	l.queue = l.queue[1:]
	close(e.done)
	return e
}

// isPush tells, in RESP2, messages of pub/sub from replies.
var isPush = map[string]bool{
	"message": true, "pmessage": true, "smessage": true,
	"subscribe": true, "psubscribe": true, "ssubscribe": true,
	"unsubscribe": true, "punsubscribe": true, "sunsubscribe": true,
}

// settleUnsent answers requests that Redis never sees, when their turn has
// come. The caller holds proxy.mu.
func (l *link) settleUnsent() {
	for len(l.queue) > 0 && l.queue[0].unsent {
		e := l.queue[0]
		l.queue = l.queue[1:]
		close(e.done)
		if l.mute {
			continue
		}
		e.fault.note(e.request)
		if e.fault.action == answer {
			l.toClient.put(&packet{raw: e.fault.reply, due: l.proxy.due()})
		} else {
			l.hangUp()
		}
	}
}

// hangUp closes both connections after what is on its way: Redis still executes
// what it was sent. The caller holds proxy.mu.
func (l *link) hangUp() {
	l.deaf, l.mute = true, true
	l.toClient.close()
	l.toRedis.close()
}

// silence swallows everything from now on. The caller holds proxy.mu.
func (l *link) silence() { l.deaf, l.mute = true, true }

// abandon gives up the requests that Redis will not answer. The caller holds proxy.mu.
func (l *link) abandon() {
	for _, e := range l.queue {
		close(e.done)
	}
	l.queue, l.gone = nil, true
}

// kill closes both connections at once.
func (l *link) kill() {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if l.killed {
		return
	}
	l.killed = true
	close(l.dead)
	_ = l.tcp.Close() // TLS is not told
	if l.redis != nil {
		_ = l.redis.Close()
	}
}

// choose finds the fault for a request. The caller holds proxy.mu.
func (p *Proxy) choose(e *exchange) {
	for _, f := range p.faults {
		switch {
		case f.off || f.left == 0 || !f.match(e.request):
		case f.action == observe:
			f.note(e.request)
		case e.fault == nil:
			e.fault = f
			if f.left > 0 {
				f.left--
			}
		}
	}
}

// due is when something that arrives now goes on. The caller holds proxy.mu.
func (p *Proxy) due() time.Time { return time.Now().Add(p.latency) }
