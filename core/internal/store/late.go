package store

import "github.com/latchkey-go/latchkey/core/internal/conn"

// verdict is what becomes of a claim, for members of a quorum that grant it late.
type verdict struct {
	decided chan struct{}
	held    func() bool // nil: it was not taken
}

// Decided says what became of a claim, for members of a quorum that grant it late: they
// get the token of the lock if that is still held then, else their grant is compensated.
// held is nil when the lock was not taken, and may be called on any goroutine. It is called once after each Acquire, and does
// not block.
func (s *Store) Decided(c *Claim, held func() bool) {
	if c.verdict != nil {
		c.verdict.held = held
		close(c.verdict.decided)
	}
}

// grantedLate makes a member that granted a lock, which the others had granted before,
// agree with them. It waits until it is decided what becomes of the lock.
func (c *Claim) grantedLate(server *conn.Server, given, token int64) {
	<-c.verdict.decided
	switch {
	case c.verdict.held == nil || !c.verdict.held():
		c.Compensate(server)
	case given != token:
		server.Queue(&conn.Queued{Command: c.writeToken(given, token), Timeout: c.store.config.Timeout}) // a member less, if it fails
		server.Flush()
	}
}
