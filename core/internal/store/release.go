package store

import (
	"context"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Release ends one hold, wherever it is: in the lock, in the queue, or not yet arrived.
type Release struct {
	Holding
	Terms                     // Lease is 0 when the lock was granted, and not renewed yet
	Token     int64           // that of the lock in Redis; 0: it is unknown, or the hold may have none
	LastToken int64           // the last one that this process has given under it
	Entered   bool            // the lock has, or had, more holds than this
	Work      Work            // what became of it
	Answer    *Answer         // to the request for which the lock was taken; nil: there is none
	Enqueues  Entry           // with which the process goes on waiting; zero: it does not
	MayArrive bool            // a copy of the acquisition may still arrive, and is to be refused
	Until     time.Time       // for how long it makes sense to repeat it
	Context   context.Context // of the call that wanted the lock, for what is told of the compensation
}

// Released is what a release has done.
type Released struct {
	Found       bool  // there was such a hold, or may have been, which another copy of the release has ended
	QueueIsNext bool  // the queue is next, in which this process has a place if it waits
	Clock       Clock // where QueueIsNext
	Heard       int   // connections to this server that heard it is free for all, as far as is known
}

// Release ends a hold, once: it is the caller's to repeat it when it fails, with a [*conn.Failure], or to give it up
// with Compensate. It blocks for timeout at most, and returns early when ctx ends. When a majority of a quorum has
// answered, the members that fail are compensated.
func (s *Store) Release(ctx context.Context, r Release, timeout time.Duration) (released Released, err error) {
	q := question[Released]{command: r.command(s, new(releaseCommand), false), timeout: timeout, decode: decodeRelease, decide: decideRelease}
	if s.IsQuorum() {
		missed := r // a copy, which only a quorum pays for
		q.missed = func(member *conn.Server) { s.compensateAt(missed, member) }
	}
	released, err = q.ask(ctx, s)
	released.Found = released.Found || q.command.Resends.MayArriveTwice()
	return released, err
}

// Compensate compensates a hold that has ended for this process, with every server. A release that is late gives the
// holds that remain no new lease.
func (s *Store) Compensate(r Release) { s.compensateAt(r, s.servers...) }

func (s *Store) compensateAt(r Release, servers ...*conn.Server) {
	s.startCompensation(r.Context, r.command(s, new(releaseCommand), true), r.Name, r.Until, servers...)
}

// simpleMode is the mode of a simple lock that has one hold, in room.
func simpleMode(room []byte, token int64, lease time.Duration) []byte {
	mode := strconv.AppendInt(append(room, 'x'), token, 10)
	if lease != usualLease {
		mode = strconv.AppendInt(append(mode, ' '), lease.Milliseconds(), 10)
	}
	return mode
}

// releaseCommand is one with room for what most need.
type releaseCommand struct {
	conn.Command
	resends conn.Resends
	words   [5]any
	mode    [32]byte
}

func (r *Release) command(s *Store, c *releaseCommand, late bool) *conn.Command {
	c.Script, c.Keys, c.Words = s.scripts.release, 3, r.Name.words(c.words[:], r.Owner)
	c.Tag, c.Resends, c.Urgent = r.Hold, &c.resends, true
	if r.isSimple() && !late && !s.IsQuorum() { // members may know a lock by other tokens
		c.Words, c.MergedArgs = append(c.Words, simpleMode(c.mode[:0], r.Token, r.Lease)), 2
		return &c.Command
	}
	tombstone := time.Duration(0)
	if r.MayArrive {
		tombstone = tombstoneLife
	}
	c.Words = append(c.Words, r.Token, r.Hold, int64(r.Work), late, tombstone.Milliseconds(), r.Enqueues.member(), r.LastToken)
	if form := r.Form.word(); form != "" || r.Answer != nil {
		c.Words = append(c.Words, form)
	}
	if r.Answer != nil {
		c.Words = append(c.Words, r.Answer.Keep.Milliseconds(), r.Answer.Text)
	}
	return &c.Command
}

func decodeRelease(from conn.Reply) (released Released, _ error) {
	if text, ok := from.Value.(string); ok {
		if heard, err := strconv.ParseInt("0"+text, 10, 32); err == nil { // a token has more bits
			return Released{Found: true, Heard: int(heard)}, nil
		}
	}
	r := reply{value: from.Value}
	switch r.verdict() {
	case saidNone:
	case saidEnded, saidDone: // done, says hand_over.lua
		released.Found = true
	case saidNextInQueue:
		released = Released{Found: true, QueueIsNext: true, Clock: Clock{r.time(), from.Sent}}
	default:
		r.foreign()
	}
	return released, r.err
}

// decideRelease: ended when a majority has ended it.
func decideRelease(b *ballot[Released]) (Released, bool, error) {
	same, decided, err := b.agreed(func(a, b Released) bool { return a.Found == b.Found })
	return same[0], decided, err
}

// compensationTimeout bounds one try, whatever a request may take: behind a connection that is dead all others wait, and they are to
// be settled within a second of an answer.
const compensationTimeout = 500 * time.Millisecond

// BackgroundRelease is a release that nobody waits for.
type BackgroundRelease struct {
	queued conn.Queued
	server *conn.Server
	to     Recipient
}

// Recipient receives what a release has done, or a failure, as a [conn.Recipient] does.
type Recipient interface {
	ReleaseAnswered(released Released, err error)
}

// NewBackgroundRelease returns a release, to be sent with Begin; not for a quorum, whose members vote.
func (s *Store) NewBackgroundRelease(r Release, to Recipient) *BackgroundRelease {
	u := &BackgroundRelease{server: s.servers[0], to: to}
	u.queued = conn.Queued{Command: r.command(s, new(releaseCommand), false), Timeout: s.config.Timeout, To: u}
	return u
}

// Begin sends it, at once and once. It does not block.
func (u *BackgroundRelease) Begin() { u.server.Begin(&u.queued) }

// Withdraw takes it back. It is false when it is on its way.
func (u *BackgroundRelease) Withdraw() bool { return u.server.Withdraw(&u.queued) }

// Receive takes the answer.
func (u *BackgroundRelease) Receive(r conn.Reply, err error) {
	released := Released{}
	if err == nil {
		released, err = decodeRelease(r)
	}
	u.to.ReleaseAnswered(released, err)
}

// Compensation is a release that one server has to confirm: send it until it does, or until it is too late.
type Compensation struct {
	Context context.Context // of the call, for its values
	Name    Name
	Until   time.Time // when it has ended by itself

	release BackgroundRelease
}

// Send has it go in the background. to receives the outcome: without an error it is confirmed. It is not sent again before that.
func (c *Compensation) Send(to Recipient) {
	c.release.to = to
	c.release.server.Repeat(&c.release.queued)
}

// startCompensation hands out a command that ends a lock, for each of some servers. The lock must not last longer for it: who
// holds it otherwise has perhaps ended as well.
func (s *Store) startCompensation(ctx context.Context, command *conn.Command, n Name, until time.Time, servers ...*conn.Server) {
	for _, server := range servers {
		c := &Compensation{Context: ctx, Name: n, Until: until, release: BackgroundRelease{server: server}}
		c.release.queued = conn.Queued{Command: command, Timeout: compensationTimeout, Until: until, To: &c.release}
		s.config.Compensate(c)
	}
}
