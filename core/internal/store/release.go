package store

import (
	"context"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

var releaseScript = conn.NewBatchScript(script("release"), 1)

// Release ends one hold.
type Release struct {
	Name    Name
	Owner   string
	Hold    string
	Failed  bool      // of the outermost hold: the lock leaves no dedup window
	Listens bool      // wake-ups reach this process
	Waits   string    // the member of the queue by which the process goes on waiting; empty: it does not
	Doubled bool      // a copy of the acquisition may still arrive, and is to be refused
	Until   time.Time // for how long it makes sense to repeat it

	Token int64         // that of the lock in Redis
	Last  int64         // the last one that this process has given under it
	Lease time.Duration // of the lock
	Sole  bool          // the claim has brought its owner along, without a window or a fixed lease, and the process has no other hold
}

// Next says who has a lock after its release.
type Next int

const (
	Nobody         Next = iota // it is free for all
	AnotherProcess             // it was granted, or is reserved; this process has a position behind it if it waits
	ThisProcess                // it is reserved
)

// Released is what a release has done.
type Released struct {
	Found  bool          // there was such a hold
	Left   int           // holds that remain; 0: the lock has ended
	Window time.Duration // the rest of the dedup window that it left; 0: none
	Next   Next
	Yield  time.Duration // for which this process lets others go first, where it is the next
	Clock  Clock         // where Next is not Nobody
	Heard  int           // connections to this server that heard it is free for all; negative when unknown
}

// Release ends a hold, once: it is the caller's to repeat it when it fails, with a
// [*conn.Failure], or to give it up with ReleaseLater. It blocks for timeout at most, and
// returns early when ctx ends. When the majority of a quorum has answered, the members
// that fail are compensated.
func (s *Store) Release(ctx context.Context, r Release, timeout time.Duration) (Released, error) {
	command := r.command(s, false)
	if s.quorum != nil {
		return s.releaseMost(ctx, r, command, timeout)
	}
	released, sent, err := do(ctx, s.servers[0], command, timeout, decodeRelease)
	if released.Next != Nobody {
		released.Clock.Sent = sent
	}
	return released, err
}

func (s *Store) releaseMost(ctx context.Context, r Release, command *conn.Command, timeout time.Duration) (Released, error) {
	b := newBallot(ctx, s.quorum, command, timeout, decodeRelease)
	released, err := b.decide(decideRelease)
	if err != nil {
		return released, err
	}
	missed := func(v vote[Released]) {
		if v.err != nil {
			s.compensate(s.servers[v.member:v.member+1], r)
		}
	}
	for _, v := range b.votes {
		missed(v)
	}
	b.late(missed)
	return released, nil
}

// ReleaseLater compensates a hold that has ended for this process, with every server. A
// release that is late gives the holds that remain no new lease.
func (s *Store) ReleaseLater(r Release) { s.compensate(s.servers, r) }

// LeaveQueue gives up the position of a hold in the queue of processes, or that of this
// process where hold is empty, and the lock if it was granted or is reserved. It does not
// block. If it fails, others lose the time for which the lock is granted or reserved.
// reserved is called, on any goroutine, if the lock is reserved for this process then, which
// lets others go first for so long.
func (s *Store) LeaveQueue(n Name, hold string, doubled bool, reserved func(lock string, yield time.Duration) bool) {
	r := Release{Name: n, Owner: s.config.Process, Hold: hold, Failed: true, Doubled: doubled}
	if hold != "" {
		r.Owner = OwnerOf(hold)
	}
	command := r.command(s, false)
	for _, server := range s.servers {
		server.Queue(&conn.Queued{Command: command, Timeout: s.config.Timeout, To: leaving{n.lock, reserved}})
		server.Flush()
	}
}

// leaving is a process that gives up a position.
type leaving struct {
	lock     string
	reserved func(lock string, yield time.Duration) bool
}

// Receive takes the answer.
func (l leaving) Receive(r conn.Reply, err error) {
	if err != nil {
		return
	}
	if released, err := decodeRelease(r.Value); err == nil && released.Next == ThisProcess {
		l.reserved(l.lock, released.Yield)
	}
}

func (r *Release) command(s *Store, late bool) *conn.Command {
	c := &struct {
		conn.Command
		words [10]any
	}{}
	c.Script = releaseScript
	if r.Sole && !r.Listens && !r.Doubled && !late && r.Last == r.Token && s.quorum == nil {
		c.Keys, c.Words = 3, append(c.words[:0], r.Name.lock, r.Name.queue(), r.Name.clock(), s.publish, r.held())
		return &c.Command
	}
	void, last, waits := any(noTime), any(""), flag(r.Listens)
	switch {
	case r.Doubled:
		void = tombstoneKept
	case late:
		void = isLate
	}
	if r.Last != r.Token {
		last = r.Last
	}
	if r.Waits != "" {
		waits = r.Waits
	}
	c.Keys = 3
	c.Words = append(c.words[:0], r.Name.lock, r.Name.queue(), r.Name.clock(),
		s.publish, r.Owner, r.Hold, flag(r.Failed), void, waits, last)
	return &c.Command
}

// held is the field latchkey:held of a lock that has it.
func (r *Release) held() string {
	token := strconv.FormatInt(r.Token, 10)
	if r.Lease == usualLease {
		return token
	}
	return token + " " + strconv.FormatInt(r.Lease.Milliseconds(), 10)
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
		if len(r.values) > 2 {
			released.Next, released.Clock.Redis = Next(r.number(2)), r.microseconds(3)
		}
		if released.Next == ThisProcess {
			released.Yield = r.milliseconds(4)
		}
	case 2:
		released = Released{Found: true, Window: r.milliseconds(1)}
	default:
		r.err = unexpected(reply)
	}
	return released, r.err
}

// decideRelease: ended when a majority has ended it.
func decideRelease(t *tally[Released]) (Released, bool, error) {
	return decideBy(t, func(r Released) bool { return r.Found })
}
