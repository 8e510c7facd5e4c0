package redistest

import (
	"net"
	"sync"
	"time"
)

// parcel is one request or reply to be written.
type parcel struct {
	raw  []byte
	due  time.Time       // not before this
	hold <-chan struct{} // nor before this is closed, unless nil
}

// outbox writes parcels in order, on a goroutine of its own, and keeps as many
// as there are.
type outbox struct {
	dead <-chan struct{} // gives everything up
	news chan struct{}   // holds one when something was put

	mu      sync.Mutex
	parcels []parcel
	closed  bool
}

func newOutbox(dead <-chan struct{}) *outbox {
	return &outbox{dead: dead, news: make(chan struct{}, 1)}
}

// put adds a parcel. It never blocks. After close it does nothing.
func (o *outbox) put(p parcel) {
	o.mu.Lock()
	if !o.closed {
		o.parcels = append(o.parcels, p)
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
func (o *outbox) drain(conn *net.TCPConn) {
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

func (o *outbox) next() (parcel, outboxState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.parcels) > 0 {
		p := o.parcels[0]
		o.parcels = o.parcels[1:]
		return p, ready
	}
	if o.closed {
		return parcel{}, closed
	}
	return parcel{}, empty
}

// ripen waits until a parcel may be written; false: never.
func (o *outbox) ripen(p parcel) bool {
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
