package simulation

import (
	"math/rand/v2"
	"net"
	"time"
)

// wire is one connection of a process to Redis. What is written to it arrives later,
// and in order, unless the nemesis has other plans. Like TCP it carries what its client
// has sent before it gave up, although the client has closed it.
type wire struct {
	network *network
	client  net.Conn // towards the process
	server  net.Conn // towards Redis

	// Guarded by network.mu.
	up, down   []packet
	upEnded    bool // the client sends no more
	downEnded  bool
	broken     bool // reset: whatever had not arrived is lost
	swallowing bool // requests vanish
	deaf       bool // replies vanish
	greeting   bool // nothing goes wrong, and no time passes
	torn       int  // when positive: so many bytes of replies still arrive
}

// packet is something under way, and when it arrives.
type packet struct {
	bytes []byte
	at    time.Time
	then  func() // when it was delivered
}

func newWire(n *network, server net.Conn, greeting bool) net.Conn {
	ours, theirs := net.Pipe()
	w := &wire{network: n, client: theirs, server: server, greeting: greeting}
	n.mu.Lock()
	n.wires[w] = true
	if n.dead { // since it was dialled
		_ = theirs.Close()
	}
	n.mu.Unlock()
	n.server.mu.Lock()
	n.server.wires[w] = true
	n.server.mu.Unlock()
	go w.readUp()
	go w.readDown()
	go w.sendUp()
	go w.sendDown()
	return ours
}

// reset breaks it at once.
func (w *wire) reset() {
	w.network.mu.Lock()
	w.broken = true
	w.network.changed.Broadcast()
	w.network.mu.Unlock()
	_ = w.client.Close()
	_ = w.server.Close()
	w.goneFromServer()
	w.goneFromNetwork()
}

// goneFromServer forgets it where its end towards Redis is closed.
func (w *wire) goneFromServer() {
	w.network.server.mu.Lock()
	defer w.network.server.mu.Unlock()
	delete(w.network.server.wires, w)
}

// goneFromNetwork forgets it where its end towards the process is closed.
func (w *wire) goneFromNetwork() {
	w.network.mu.Lock()
	defer w.network.mu.Unlock()
	delete(w.network.wires, w)
}

// readUp takes requests from the client, until it closes the connection.
func (w *wire) readUp() {
	var pending []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := w.client.Read(chunk)
		pending = append(pending, chunk[:n]...)
		w.network.mu.Lock()
		for {
			size, name := nextCommand(pending)
			if size == 0 {
				break
			}
			request := append([]byte(nil), pending[:size]...)
			pending = pending[size:]
			w.network.request(w, name, request)
		}
		w.upEnded = w.upEnded || err != nil
		w.network.changed.Broadcast()
		w.network.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// readDown takes replies and messages from Redis.
func (w *wire) readDown() {
	chunk := make([]byte, 64<<10)
	for {
		n, err := w.server.Read(chunk)
		w.network.mu.Lock()
		if n > 0 && !w.deaf {
			w.reply(append([]byte(nil), chunk[:n]...))
		}
		w.downEnded = w.downEnded || err != nil
		w.network.changed.Broadcast()
		w.network.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// reply sends something to the client. network.mu is held.
func (w *wire) reply(b []byte) {
	var then func()
	if w.torn > 0 {
		b = b[:min(len(b), w.torn)]
		w.deaf = true
		then = w.reset
	}
	if w.greeting {
		w.down = append(w.down, packet{bytes: b})
		return
	}
	w.down = append(w.down, packet{b, w.network.arrival(w.down), then})
	w.network.changed.Broadcast()
}

// sendUp delivers requests.
func (w *wire) sendUp() {
	n := w.network
	for {
		p, ok := n.await(w, &w.up, &w.upEnded, func() bool { return n.mute && !w.greeting })
		if !ok {
			_ = w.server.Close()
			w.goneFromServer()
			return
		}
		if _, err := w.server.Write(p.bytes); err == nil && p.then != nil {
			p.then()
		}
	}
}

// sendDown delivers replies and messages.
func (w *wire) sendDown() {
	n := w.network
	for {
		p, ok := n.await(w, &w.down, &w.downEnded, func() bool { return n.deaf && !w.greeting })
		if !ok {
			_ = w.client.Close()
			w.goneFromNetwork()
			return
		}
		_, _ = w.client.Write(p.bytes) // a client that has gone away hears nothing
		if p.then != nil {
			p.then()
		}
	}
}

// await waits for the next packet of a queue to arrive. It is false when none will.
func (n *network) await(w *wire, queue *[]packet, ended *bool, stopped func() bool) (packet, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		switch {
		case w.broken:
			return packet{}, false
		case len(*queue) > 0 && time.Now().Before((*queue)[0].at):
			d := time.Until((*queue)[0].at)
			n.mu.Unlock()
			time.Sleep(d)
			n.mu.Lock()
		case len(*queue) > 0 && !stopped():
			p := (*queue)[0]
			*queue = (*queue)[1:]
			return p, true
		case len(*queue) == 0 && *ended:
			return packet{}, false
		default:
			n.changed.Wait()
		}
	}
}

// arrival is when something that is sent now arrives, behind what is under way.
// n.mu is held.
func (n *network) arrival(behind []packet) time.Time {
	at := time.Now().Add(n.delay())
	if last := len(behind) - 1; last >= 0 && behind[last].at.After(at) {
		at = behind[last].at
	}
	return at
}

// delay is how long a message takes: mostly little. n.mu is held.
func (n *network) delay() time.Duration {
	d := 50*time.Microsecond + time.Duration(n.random.ExpFloat64()*float64(n.latency))
	if n.chance(n.noise.spike) {
		d += time.Duration(n.random.Int64N(int64(3 * n.timeout / 2)))
	}
	return d
}

func (n *network) chance(p float64) bool { return p > 0 && n.random.Float64() < p }

func between(random *rand.Rand, from, to time.Duration) time.Duration {
	if to <= from {
		return from
	}
	return from + time.Duration(random.Int64N(int64(to-from)))
}
