package store

import (
	"context"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Release ends one hold, wherever it is: in the lock, in the queue, or not yet arrived.
type Release struct {
	Name      Name
	Owner     string
	Hold      string
	Form      Form
	Failed    bool      // of the outermost hold: the lock leaves no dedup window, and a first attempt no trace
	Waits     Place     // with which the process goes on waiting; zero: it does not
	Answer    *Answer   // to the request for which the lock was taken; nil: there is none
	MayArrive bool      // a copy of the acquisition may still arrive, and is to be refused
	Until     time.Time // for how long it makes sense to repeat it

	Token int64         // that of the lock in Redis
	Last  int64         // the last one that this process has given under it
	Lease time.Duration // of the lock in Redis; 0: it was granted, and not renewed yet
	Sole  bool          // no more is known of the lock than that: the owner is this hold, there is no other, no window, no fixed lease
}

// Released is what a release has done.
type Released struct {
	Found  bool          // there was such a hold
	Left   int           // holds that remain; 0: the lock has ended
	Window time.Duration // the rest of the dedup window that it left; 0: none
	Passed bool          // the queue is next, in which this process has a place if it waits
	Clock  Clock         // where Passed
	Heard  int           // connections to this server that heard it is free for all; negative when unknown
}

// Release ends a hold, once: it is the caller's to repeat it when it fails, with a
// [*conn.Failure], or to give it up with ReleaseLater. It blocks for timeout at most, and
// returns early when ctx ends. When the majority of a quorum has answered, the members
// that fail are compensated.
func (s *Store) Release(ctx context.Context, r Release, timeout time.Duration) (Released, error) {
	return s.redis.release(ctx, r, timeout)
}

// ReleaseLater compensates a hold that has ended for this process, with every server. A
// release that is late gives the holds that remain no new lease.
func (s *Store) ReleaseLater(r Release) { s.compensate(s.servers, r) }

func (r *Release) command(s *Store, late bool) *conn.Command {
	if r.Sole && r.Waits == (Place{}) && !r.MayArrive && !late && r.Last == r.Token && !s.Can.Differ {
		return r.brief(s)
	}
	c := &struct {
		conn.Command
		words [11]any
	}{}
	c.Script, c.Keys = s.scripts.release, 3
	words := r.Name.words(c.words[:], r.Owner)
	tombstone, last := any(noTime), any("")
	if r.MayArrive {
		tombstone = tombstoneKept
	}
	if r.Last != r.Token {
		last = r.Last
	}
	c.Words = append(words, r.Hold, flag(r.Failed), flag(late), tombstone, r.Waits.member(), last)
	if r.Form != Exclusive || r.Answer != nil {
		c.Words = append(c.Words, string(r.Form))
	}
	if r.Answer != nil {
		c.Words = append(c.Words, r.Answer.Keep.Milliseconds(), r.Answer.Text)
	}
	return &c.Command
}

// brief is the command for a lock that nobody else has to do with.
func (r *Release) brief(s *Store) *conn.Command {
	c := &struct {
		conn.Command
		words [5]any
		mode  [32]byte
	}{}
	c.Script, c.Keys = s.scripts.release, 3
	c.Words = append(r.Name.words(c.words[:], r.Owner), r.mode(c.mode[:0]))
	return &c.Command
}

// mode appends the field of that name.
func (r *Release) mode(room []byte) []byte {
	mode := strconv.AppendInt(append(room, 'x'), r.Token, 10)
	if r.Lease == usualLease {
		return mode
	}
	return strconv.AppendInt(append(mode, ' '), r.Lease.Milliseconds(), 10)
}

// decodeRelease reads the reply to a release; that to the usual one, of a lock that is
// free for all then, is a number.
func decodeRelease(reply any) (released Released, err error) {
	if heard, ok := reply.(int64); ok {
		return Released{Found: true, Heard: int(heard)}, nil
	}
	r := read(reply)
	switch found := r.number(0); found {
	case 0, 1:
		released = Released{Found: found == 1, Left: int(r.number(1))}
	case 2:
		released = Released{Found: true, Window: r.milliseconds(1)}
	case 3:
		released = Released{Found: true, Passed: true, Clock: Clock{Redis: r.microseconds(1)}}
	default:
		r.err = unexpected(reply)
	}
	return released, r.err
}

// decideRelease: ended when a majority has ended it.
func decideRelease(t *tally[Released]) (Released, bool, error) {
	return decideBy(t, func(r Released) bool { return r.Found })
}
