package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// HandOver parks an exclusive lock for whoever has a ticket.
type HandOver struct {
	Holding
	Terms            // of the lock, should it be taken back
	Token     int64  // that of the lock in Redis
	LastToken int64  // the last one that this process has given under it
	ID        string // of the request, see NewHold
	Ticket    string
	TTL       time.Duration // for how long it is parked
	Drop      bool          // the dedup window does not go along
}

// ErrOthers says that the lock cannot be handed over, for there are other holds.
var ErrOthers = errors.New("the lock has other holds")

// HandOver parks the lock. It blocks for Timeout at most, and returns early when ctx ends. It fails with [ErrGone] when
// the lock is not that owner's any more, with [ErrOthers], or with a [*conn.Failure]; when the outcome is unknown,
// TakeBack must follow.
func (s *Store) HandOver(ctx context.Context, h HandOver) error {
	return s.askHolder(ctx, h.command(s, h.TTL, ""))
}

// TakeBack has the lock held as before, for left since sent, whether or not it was parked, and has a copy of the
// request refused that arrives later. It blocks and fails as HandOver does; it counts once.
func (s *Store) TakeBack(ctx context.Context, h HandOver, left time.Duration) (sent time.Time, err error) {
	sent = time.Now()
	return sent, s.askHolder(ctx, h.command(s, left, leaseArg(h.Lease, h.Fixed)))
}

// CompensateHandOver compensates requests of which nobody knows the outcome, for a lock that is lost: it ends, or it would be
// parked for nobody, or held by nobody when what should take it back arrives late.
func (s *Store) CompensateHandOver(ctx context.Context, h HandOver) {
	s.startCompensation(ctx, h.command(s, 0, leaseArg(h.Lease, h.Fixed)), h.Name, time.Now().Add(max(h.TTL, h.Lease)), s.servers...)
}

// command parks the lock for ttl, or takes it back for so long if it is given the lease.
func (h *HandOver) command(s *Store, ttl time.Duration, lease any) *conn.Command {
	words := []any{
		h.Name.Lock(), h.Name.clock(), h.Owner, h.Hold, h.Token, h.LastToken, digest(h.Ticket), ttl.Milliseconds(), lease, h.ID, h.Drop,
	}
	return &conn.Command{
		Script: s.scripts.handOver, Keys: 2, Words: words, Tag: fmt.Sprint(h.ID, lease), Urgent: true, Resends: new(conn.Resends),
	}
}

// askHolder is do for what the holder of an exclusive lock wants of it, alone.
func (s *Store) askHolder(ctx context.Context, c *conn.Command) error {
	_, err := do(ctx, s.servers[0], c, s.config.Timeout, func(from conn.Reply) (done bool, err error) {
		r := reply{value: from.Value}
		switch r.verdict() {
		case saidDone:
			return true, nil
		case saidNone:
			return false, ErrGone
		case saidHasOthers:
			return false, ErrOthers
		}
		return false, unexpected(from.Value)
	})
	return err
}
