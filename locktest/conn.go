package locktest

import (
	"net"
	"sync"
	"time"
)

// newBufferedConn starts the sender of a connection, which Close ends.
func newBufferedConn(conn net.Conn) net.Conn {
	c := &bufferedConn{Conn: conn, more: make(chan struct{}, 1), closed: make(chan struct{})}
	go c.flush()
	return c
}

// bufferedConn has a send buffer, as sockets have and pipes have not: without
// one a long pipeline and its replies wait for one another.
type bufferedConn struct {
	net.Conn
	more   chan struct{}
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	buffer []byte
}

// Write never blocks.
func (c *bufferedConn) Write(b []byte) (int, error) {
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
func (c *bufferedConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline has no effect.
func (c *bufferedConn) SetWriteDeadline(time.Time) error { return nil }

// Close ends the connection.
func (c *bufferedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// flush sends what was written, until Close.
func (c *bufferedConn) flush() {
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
