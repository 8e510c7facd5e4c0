package redistest

import (
	"sync"
	"time"
)

// packet is one request or reply to be written.
type packet struct {
	raw  []byte
	due  time.Time       // not before this
	hold <-chan struct{} // nor before this is closed, unless nil
}

// outbox writes packets in order, on a goroutine of its own, and keeps as many
// as there are.
type outbox struct {
	dead <-chan struct{} // gives everything up
	news chan struct{}   // holds one when something was put

	mu      sync.Mutex
	packets []*packet
	closed  bool
}

func newOutbox(dead <-chan struct{}) *outbox {
	return &outbox{dead: dead, news: make(chan struct{}, 1)}
}

// put adds a packet. It never blocks. After close it does nothing.
func (o *outbox) put(p *packet) {
	o.mu.Lock()
	if !o.closed {
		o.packets = append(o.packets, p)
	}
	o.mu.Unlock()
	o.wake()
}

// close has the connection closed for writing after what was put before.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.wake()
}

func (o *outbox) wake() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// drain writes until close or death. What the other side does not take is lost.
func (o *outbox) drain(conn stream) {
	for {
		p, state := o.next()
		switch state {
		case closed:
			_ = conn.CloseWrite()
			return
		case empty:
			select {
			case <-o.news:
			case <-o.dead:
				return
			}
			continue
		}
		if !o.ripen(p) {
			return
		}
		_, _ = conn.Write(p.raw) // a reader notices what is wrong
	}
}

type outboxState int

const (
	ready outboxState = iota
	empty
	closed
)

func (o *outbox) next() (*packet, outboxState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.packets) > 0 {
		p := o.packets[0]
		o.packets = o.packets[1:]
		return p, ready
	}
	if o.closed {
		return nil, closed
	}
	return nil, empty
}

// ripen waits until a packet may be written; false: never.
func (o *outbox) ripen(p *packet) bool {
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-o.dead:
			return false
		}
	}
	if rest := time.Until(p.due); rest > 0 {
		t := time.NewTimer(rest)
		defer t.Stop()
		select {
		case <-t.C:
		case <-o.dead:
			return false
		}
	}
	return true
}
