// Package buffered gives pipes the send buffer that sockets have.
package buffered

import (
	"net"
	"sync"
	"time"
)

// New returns a connection that sends by conn without blocking the writer: over a
// bare pipe a long pipeline and its replies wait for one another. It starts a
// goroutine, which Close ends.
func New(conn net.Conn) net.Conn {
	c := &buffered{Conn: conn, more: make(chan struct{}, 1), closed: make(chan struct{})}
	go c.flush()
	return c
}

type buffered struct {
	net.Conn
	more   chan struct{}
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	buffer []byte
}

// Write never blocks.
func (c *buffered) Write(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	c.mu.Lock()
	c.buffer = append(c.buffer, b...)
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

// SetDeadline is for reading: writing does not block.
func (c *buffered) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline has no effect.
func (c *buffered) SetWriteDeadline(time.Time) error { return nil }

// Close ends the connection.
func (c *buffered) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// flush sends what was written, until Close.
func (c *buffered) flush() {
	for {
		c.mu.Lock()
		b := c.buffer
		c.buffer = nil
		c.mu.Unlock()
		if len(b) > 0 {
			if _, err := c.Conn.Write(b); err != nil {
				_ = c.Conn.Close()
				return
			}
			continue
		}
		select {
		case <-c.more:
		case <-c.closed:
			return
		}
	}
}
