package store

import (
	"context"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// HandOver parks an exclusive lock for whoever has a ticket.
type HandOver struct {
	Name   Name
	Owner  string
	Hold   string
	Token  int64  // that of the lock in Redis
	Last   int64  // the last one that this process has given under it
	ID     string // of the request, see [Store.NewHold]
	Ticket string
	TTL    time.Duration // for how long it is parked
	Drop   bool          // the dedup window does not go along
	Lease  time.Duration // of the lock, should it be taken back
	Fixed  bool
}

// Parked is what became of it.
type Parked int64

const (
	NotOurs   Parked = iota // the lock is not that owner's any more
	Done                    // it is parked, or held as before
	HasInside               // there are other holds
)

// HandOver parks the lock. It blocks for Timeout at most, and returns early when ctx ends. It
// fails with a [*conn.Failure]; when the outcome is unknown, TakeBack must follow.
func (s *Store) HandOver(ctx context.Context, h HandOver) (Parked, time.Time, error) {
	return s.handOver(ctx, s.handOverBy(h, h.TTL, ""))
}

// TakeBack has the lock held as before, for left from now on, whether or not it was parked,
// and has a copy of the request refused that arrives later. It blocks and fails as HandOver
// does; it counts once.
func (s *Store) TakeBack(ctx context.Context, h HandOver, left time.Duration) (Parked, time.Time, error) {
	return s.handOver(ctx, s.takeBackBy(h, left))
}

// TakeBackLater compensates a request of which nobody knows the outcome, for a lock that is lost: it
// is taken back for a moment, or it would be parked for nobody.
func (s *Store) TakeBackLater(h HandOver) {
	s.compensateBy(s.takeBackBy(h, time.Millisecond), s.servers, h.Name, time.Now().Add(h.TTL))
}

func (s *Store) takeBackBy(h HandOver, left time.Duration) *conn.Command {
	lease := h.Lease.Milliseconds()
	if h.Fixed {
		lease = -lease
	}
	return s.handOverBy(h, left, strconv.FormatInt(lease, 10))
}

func (s *Store) handOverBy(h HandOver, ttl time.Duration, lease string) *conn.Command {
	return &conn.Command{
		Script:  s.scripts.handOver,
		Keys:    2,
		Words:   []any{h.Name.Lock(), h.Name.clock(), h.Owner, h.Hold, h.Token, h.Last, digest(h.Ticket), ttl.Milliseconds(), lease, h.ID, flag(h.Drop)},
		Resends: new(conn.Resends),
	}
}

func (s *Store) handOver(ctx context.Context, c *conn.Command) (Parked, time.Time, error) {
	return do(ctx, s.servers[0], c, s.config.Timeout, decodeParked)
}

func decodeParked(value any) (Parked, error) {
	r, err := parse(value)
	switch {
	case err != nil || r.status == saidNone:
		return NotOurs, err
	case r.status == saidDone:
		return Done, nil
	case r.status == saidHasOthers:
		return HasInside, nil
	}
	return NotOurs, unexpected(value)
}
