package store

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// RenewalRecipient receives the outcome of a renewal, once: whether the lock is still held, from sent on for a lease, or a
// [*conn.Failure] or another error that left it unknown.
type RenewalRecipient interface {
	Renewed(held bool, err error, sent time.Time)
}

// Renew starts the lease of a lock anew, if its owner still holds it with that token.
type Renew struct {
	Name      Name
	Owner     string
	Token     int64
	Lease     time.Duration
	First     bool  // a release has granted it: this is its first lease of that length
	Share     bool  // the lock was exclusive, and becomes a shared one
	LastToken int64 // the last token that this process has given under it, with Share
}

// renewalCommand is a renewal in one piece: there are many.
type renewalCommand struct {
	command conn.Command
	queued  conn.Queued
	words   [4]any
	mode    [24]byte // room for most
	to      RenewalRecipient
}

func (s *Store) newRenewal(w Renew) *renewalCommand {
	r := new(renewalCommand)
	r.words = [...]any{w.Name.Lock(), w.Owner, simpleMode(r.mode[:0], w.Token, w.Lease), leaseArg(w.Lease, false)}
	name := w.Owner + string(r.words[2].([]byte))
	r.command = conn.Command{Script: s.scripts.renew, Keys: 1, Words: r.words[:], Tag: name, MergedArgs: 3, Urgent: true}
	switch {
	case w.Share:
		r.command.Script, r.command.Keys, r.command.MergedArgs = s.scripts.downgrade, 3, 0
		r.command.Words = append(w.Name.words(nil, w.Owner), r.words[2], r.words[3], w.LastToken)
	case w.First:
		r.command.Words, r.command.MergedArgs = append(r.command.Words, "first"), 0
	}
	return r
}

func (r *renewalCommand) Receive(reply conn.Reply, err error) {
	held := false
	if err == nil {
		held, err = yes(reply)
	}
	r.to.Renewed(held, err, reply.Sent)
}

// Renew is queued, and goes with the next Flush.
func (s *Store) Renew(w Renew, timeout time.Duration, to RenewalRecipient) {
	r := s.newRenewal(w)
	if r.to = to; s.IsQuorum() {
		r.to = &renewalVotes{ballot: ballot[bool]{members: len(s.servers)}, to: to}
	}
	r.queued = conn.Queued{Command: &r.command, Timeout: timeout, To: r}
	for _, other := range s.servers[1:] {
		queued := r.queued
		other.Queue(&queued)
	}
	s.servers[0].Queue(&r.queued)
}

// Refresh is Renew now. The command is sent again when its connection breaks. It blocks for Timeout at most, and
// returns early when ctx ends; the error is a [*conn.Failure].
func (s *Store) Refresh(ctx context.Context, w Renew) (held bool, sent time.Time, err error) {
	c := &s.newRenewal(w).command
	c.Resends = new(conn.Resends)
	sent = time.Now()
	held, err = question[bool]{c, s.config.Timeout, yes, decideYes, nil}.ask(ctx, s)
	return held, sent, err
}

// Downgrade has the holder of an exclusive lock share it, and its lease begin anew unless that is 0. It blocks and fails as HandOver
// does; mayArrive says that a copy of the request may still be on its way.
func (s *Store) Downgrade(ctx context.Context, w Renew) (sent time.Time, mayArrive bool, err error) {
	w.Share = true
	c := &s.newRenewal(w).command
	c.Resends = new(conn.Resends)
	sent = time.Now()
	err = s.askHolder(ctx, c)
	return sent, c.Resends.MayArriveTwice(), err
}

// renewalVotes reports once, when the members' answers decide it.
type renewalVotes struct {
	mu     sync.Mutex
	ballot ballot[bool]
	sent   time.Time        // the first of them
	to     RenewalRecipient // nil: it was told
}

func (v *renewalVotes) Renewed(held bool, err error, sent time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.sent.IsZero() || sent.Before(v.sent) {
		v.sent = sent
	}
	v.ballot.votes = append(v.ballot.votes, vote[bool]{answer: held, err: err})
	if held, decided, err := decideYes(&v.ballot); decided && v.to != nil {
		v.to.Renewed(held, err, v.sent)
		v.to = nil
	}
}
