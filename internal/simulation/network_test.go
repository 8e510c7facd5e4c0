//go:build go1.25

package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"
)

// network lies between one process and Redis.
type network struct {
	server  *redisServer
	timeout time.Duration // after which the process gives up
	late    time.Duration // how much later than that something may arrive

	mu      sync.Mutex
	changed *sync.Cond
	random  *rand.Rand
	latency time.Duration // mean
	noise   noise
	usual   noise
	mute    bool // requests wait
	deaf    bool // replies wait
	refused bool // no new connection
	hanging bool // new connections are not answered
	dead    bool // for ever
	hearing hearing
	wires   map[*wire]bool
	counts  map[string]int // what has happened, by name
	ghosts  sync.WaitGroup // requests that arrive without their connection
}

// noise is how probable each mishap is for each request.
type noise struct {
	loseRequest, swallowRequest, loseReply, swallowReply, tearReply, late, double, cut, spike float64
}

// hearing says whether a process can subscribe.
type hearing int

const (
	hears      hearing = iota
	mayNot             // Redis refuses the channels
	cannot             // the connection ends at once
	cutAgain           // the connection ends again and again
	hearsKinds         // how many there are
)

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}

func newNetwork(s *redisServer, random *rand.Rand, latency, timeout, late time.Duration) *network {
	n := &network{
		server: s, random: random, latency: latency, timeout: timeout, late: late,
		wires: map[*wire]bool{}, counts: map[string]int{},
	}
	n.changed = sync.NewCond(&n.mu)
	return n
}

// set changes it.
func (n *network) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
	n.changed.Broadcast()
}

// heal ends all that ends.
func (n *network) heal() {
	n.set(func() {
		n.noise, n.usual = noise{}, noise{}
		n.mute, n.deaf, n.refused, n.hanging = false, false, false, false
	})
	n.ghosts.Wait()
}

// resetAll breaks all connections.
func (n *network) resetAll() {
	n.mu.Lock()
	var all []*wire
	for w := range n.wires {
		all = append(all, w)
	}
	n.mu.Unlock()
	for _, w := range all {
		w.reset()
	}
}

// dial opens a connection, as a go-redis Dialer.
func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if subscribing() {
		return n.dialAtOnce()
	}
	n.mu.Lock()
	d := n.delay()
	n.mu.Unlock()
	time.Sleep(d)
	stop := context.AfterFunc(ctx, func() { n.set(func() {}) })
	defer stop()
	n.mu.Lock()
	for n.hanging && !n.dead && ctx.Err() == nil {
		n.changed.Wait()
	}
	refused := n.refused || n.dead
	n.mu.Unlock()
	if ctx.Err() != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	}
	if refused {
		return nil, errRefused
	}
	server, err := n.server.accept()
	if err != nil {
		return nil, err
	}
	return newWire(n, server, false), nil
}

// dialAtOnce opens a connection, or fails, while no time passes: go-redis holds a mutex
// while it connects for a subscription, and somebody who waits for a mutex stops the
// fake time.
func (n *network) dialAtOnce() (net.Conn, error) {
	n.mu.Lock()
	silent := n.refused || n.dead || n.hanging || n.mute || n.deaf
	n.mu.Unlock()
	if silent {
		return nil, errRefused
	}
	server, err := n.server.accept()
	if err != nil {
		return nil, err
	}
	return newWire(n, server, true), nil
}

// subscribing says whether go-redis dials for a subscription.
func subscribing() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "redis/go-redis/v9.(*PubSub).") {
			return true
		}
		if !more {
			return false
		}
	}
}

// request sends a request on its way, and decides what happens to it. n.mu is held.
func (n *network) request(w *wire, name string, b []byte) {
	if w.swallowing || w.broken || n.dead {
		return
	}
	if w.greeting = w.greeting && name == "HELLO"; w.greeting {
		w.up = append(w.up, packet{bytes: b})
		return
	}
	if name == "SUBSCRIBE" && !n.subscribes(w) {
		return
	}
	at := n.arrival(w.up)
	send := func(then func()) { w.up = append(w.up, packet{b, at, then}) }
	resetLater := func(d time.Duration) { time.AfterFunc(d, w.reset) }
	// Only what the client has no answer to arrives late or twice: between two TCP
	// connections that both succeed nothing is repeated.
	ghost := func(d time.Duration) {
		n.ghosts.Go(func() {
			time.Sleep(d)
			n.server.deliver(b)
		})
	}
	switch o := n.noise; {
	case n.happens("request lost", o.loseRequest):
		w.swallowing = true
		resetLater(n.delay())
	case n.happens("request swallowed", o.swallowRequest):
		w.swallowing = true
	case n.happens("reply lost", o.loseReply):
		w.deaf, w.swallowing = true, true
		send(nil)
		resetLater(time.Until(at) + between(n.random, time.Millisecond, n.timeout/2))
	case n.happens("reply swallowed", o.swallowReply):
		w.deaf, w.swallowing = true, true
		send(nil)
	case n.happens("reply torn", o.tearReply):
		w.torn = 1 + n.random.IntN(20)
		send(nil)
	case n.happens("request late", o.late):
		w.swallowing = true
		resetLater(n.delay())
		ghost(n.lateness())
	case n.happens("request doubled", o.double):
		w.deaf, w.swallowing = true, true
		send(nil)
		resetLater(time.Until(at) + n.delay())
		ghost(time.Until(at) + n.lateness())
	case n.happens("connection cut", o.cut):
		send(nil)
		resetLater(between(n.random, 0, 4*n.latency))
	default:
		send(nil)
	}
}

// lateness is how late something arrives without its connection: soon, or when all has
// been given up. n.mu is held.
func (n *network) lateness() time.Duration { return between(n.random, 0, n.late>>n.random.IntN(12)) }

func (n *network) happens(name string, p float64) bool {
	if !n.chance(p) {
		return false
	}
	n.counts[name]++
	return true
}

// subscribes does to a subscription what the process's hearing asks for. n.mu is held.
func (n *network) subscribes(w *wire) bool {
	switch n.hearing {
	case mayNot:
		w.reply([]byte("-NOPERM this user has no permissions to access one of the channels used as arguments\r\n"))
		return false
	case cannot:
		time.AfterFunc(n.delay(), w.reset)
		return false
	case cutAgain:
		time.AfterFunc(between(n.random, 0, 300*time.Millisecond), w.reset)
	}
	return true
}

// die cuts the process off for ever. What it had sent may still arrive.
func (n *network) die() {
	n.set(func() {
		n.dead, n.mute, n.deaf, n.hanging = true, false, false, false
		for w := range n.wires {
			w.deaf = true
			if n.random.IntN(2) == 0 {
				w.up = nil
			}
			w.upEnded = true
		}
	})
	n.hangUp()
}

// hangUp closes what the process has not closed, as its end does: go-redis forgets a
// connection whose greeting fails, and one that it dials while it is closed.
func (n *network) hangUp() {
	n.mu.Lock()
	n.dead = true
	n.changed.Broadcast()
	var all []*wire
	for w := range n.wires {
		all = append(all, w)
	}
	n.mu.Unlock()
	for _, w := range all {
		_ = w.client.Close()
	}
}
