package store

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

const compensationTimeout = 500 * time.Millisecond

// Compensation is a release that one server has to confirm: send it until it does, or until it is too late.
type Compensation struct {
	Name  Name
	Until time.Time // when it has ended by itself

	queued conn.Queued
	server *conn.Server
	to     conn.Recipient
}

// Send queues it with its server, to go with the next Flush. to receives the outcome: without an error it is confirmed.
// It is not sent again before that.
func (c *Compensation) Send(to conn.Recipient) {
	c.to = to
	c.server.Queue(&c.queued)
}

// Receive takes the answer.
func (c *Compensation) Receive(r conn.Reply, err error) {
	if err == nil {
		_, err = decodeRelease(r)
	}
	c.to.Receive(r, err)
}

// compensate hands out a command that ends a lock for each of some servers. The lock must not last longer for it: who
// holds it otherwise has perhaps ended as well.
func (s *Store) compensate(command *conn.Command, n Name, until time.Time, servers ...*conn.Server) {
	for _, server := range servers {
		c := &Compensation{Name: n, Until: until, server: server}
		c.queued = conn.Queued{Command: command, Timeout: min(compensationTimeout, s.config.Timeout), To: c}
		s.config.Compensate(c)
	}
}
