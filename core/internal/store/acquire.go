package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Claim is one attempt to take a lock, or to enter one that its owner holds. It serves
// one Acquire and is not changed afterwards.
type Claim struct {
	Name    Name
	Owner   string // the field that counts holds
	Hold    string // marks this one, see [Store.NewHold]
	Form    Form
	Lease   time.Duration // in whole ms, as all times here
	Fixed   bool          // nobody renews the lease
	Window  time.Duration // from now on, for which a success keeps the lock taken; 0: none
	Enter   int64         // token of the lock to enter; 0: a free one will do
	Ticket  string        // of a lock that was handed over, which is to be taken; empty: no such one
	Attempt *Attempt      // for which it is taken; nil: for none
	Wait    Waiting       // when the lock is busy; NotWaiting in a quorum
	Resends *conn.Resends // nil: it is sent once

	store   *Store
	command conn.Command
	words   [6]any   // room for most
	verdict *verdict // of a quorum's claim
}

// Waiting says how a claim waits in the queue of a lock that is busy.
type Waiting int

const (
	NotWaiting Waiting = iota
	Listening          // a message tells the process when the lock is granted to the hold
	Polling            // no message arrives: the hold is granted the lock, and finds out when it asks again
)

var waitingArgs = [...]any{NotWaiting: "0", Listening: "1", Polling: "2"}

// Grant is a lock that was taken or entered.
type Grant struct {
	Token     int64 // fencing token
	Lease     time.Duration
	TTL       time.Duration // what was left when Redis answered; less than the lease for a fixed one that was entered
	Fixed     bool
	Outermost bool      // it was free before
	Ahead     bool      // the token is ahead of the clock of Redis
	Attempt   int       // its number, of a claim for one
	Sent      time.Time // a time before Redis was asked: the TTL was true after it
}

// Busy says that somebody else has the lock.
type Busy struct {
	Until      time.Time // when it ends if nobody prolongs it; zero: it has no end
	Exact      bool      // nothing will prolong it
	Done       bool      // nobody holds it: its dedup window lasts. Exact as well
	HandedOver bool      // for whoever has the ticket, if nobody has resumed it yet
	New        bool      // the hold was not in the queue before
	Split      bool      // some members of a quorum granted it: contenders block each other
	Clock      Clock     // of the Redis that said so; not of a quorum
}

func (b *Busy) Error() string { return "the lock is busy" }

// ErrUpgrade says that the owner has the lock in a form that does not include the other.
var ErrUpgrade = errors.New("the owner holds the lock in another form")

// ErrGone says that the lock to enter is gone, or that there is none for the ticket, or that the claim was withdrawn before it
// arrived.
var ErrGone = errors.New("the lock to enter is gone")

// errOtherKind is why a name cannot be locked.
var errOtherKind = &conn.Failure{Outcome: conn.Refused, Cause: errors.New("the name has a lock of another kind, as Redisson's getReadWriteLock makes")}

// errWithdrawn is the answer to a claim whose hold has a tombstone.
var errWithdrawn = fmt.Errorf("%w: the claim was withdrawn before it arrived", ErrGone)

// Acquire asks once for a lock. It blocks for Timeout at most, in a quorum for some
// times that, and returns early when ctx ends. It fails with [*Busy], [ErrUpgrade], an [ErrGone] or a
// [*conn.Failure], and for an attempt with [*Answered], [ErrReused] or [ErrOutcomeUnknown]; then what the claim may have left in Redis, or may yet leave, is
// compensated. Decided must follow.
func (s *Store) Acquire(ctx context.Context, c *Claim) (Grant, error) {
	c.prepare(s)
	return s.redis.acquire(ctx, c)
}

// Withdraw compensates a claim that was granted but that nobody wants any more, with
// every server. lease is that of the lock.
func (s *Store) Withdraw(c *Claim, lease time.Duration) { c.withdraw(s.servers, lease) }

func (c *Claim) withdraw(servers []*conn.Server, lease time.Duration) {
	c.store.compensate(servers, Release{
		Name:      c.Name,
		Owner:     c.Owner,
		Hold:      c.Hold,
		Form:      c.Form,
		Failed:    true,
		MayArrive: true,
		Until:     time.Now().Add(lease + tombstoneLife),
	})
}

// Compensate is withdraw for one server, whose answer nobody has heard.
func (c *Claim) Compensate(server *conn.Server) { c.withdraw([]*conn.Server{server}, c.Lease) }

func (c *Claim) prepare(s *Store) {
	words := c.Name.words(c.words[:], c.Owner)
	lease := milliseconds(c.Lease)
	if c.Fixed {
		lease = -c.Lease.Milliseconds()
	}
	switch {
	case c.Ticket != "" || c.Attempt != nil:
	case c.Owner != c.Hold || c.Fixed || c.Window > 0 || c.Enter != 0 || c.Form != Exclusive:
		enter := any("")
		if c.Enter != 0 {
			enter = c.Enter
		}
		words = append(words, lease, waitingArgs[c.Wait], c.Hold, milliseconds(c.Window), enter)
		if c.Form != Exclusive {
			words = append(words, string(c.Form))
		}
	case c.Wait != Listening:
		words = append(words, lease, waitingArgs[c.Wait])
	case c.Lease != usualLease:
		words = append(words, lease)
	}
	script := s.scripts.acquire
	switch {
	case c.Ticket != "":
		script = s.scripts.resume
		words = append(words, c.Hold, lease, milliseconds(c.Window), digest(c.Ticket))
	case c.Attempt != nil:
		script = s.scripts.attempt
		words = c.Attempt.words(words, c.Hold, lease)
	}
	c.store = s
	c.command = conn.Command{Script: script, Keys: 3, Words: words, Resends: c.Resends, Compensator: c}
}

// answer is what one Redis says to a claim.
type answer struct {
	grant   Grant
	refused error // nil or why there is no grant
}

func (a answer) isGrant() bool { return a.refused == nil }

func (a answer) isBusy() bool {
	_, busy := a.refused.(*Busy)
	return busy
}

// at completes an answer, or says why there is none.
func (a answer) at(sent time.Time, err error) (Grant, error) {
	if err == nil {
		err = a.refused
		if busy, ok := err.(*Busy); ok {
			busy.Clock.Sent = sent
		}
	}
	if err != nil {
		return Grant{}, err
	}
	a.grant.Sent = sent
	return a.grant, nil
}

// grants tells a reply that grants the lock.
func grants(reply any) bool {
	if token, ok := reply.(string); ok {
		_, err := parseToken(token)
		return err == nil
	}
	r := read(reply)
	return r.number(0) == 1
}

// decode reads the reply to a claim; that to the usual one, of a free lock, is the token.
func (c *Claim) decode(reply any) (a answer, err error) {
	if token, ok := reply.(string); ok {
		a.grant = Grant{Lease: c.Lease, TTL: c.Lease, Fixed: c.Fixed, Outermost: true}
		a.grant.Token, err = parseToken(token)
		return a, err
	}
	r := read(reply)
	switch r.number(0) {
	case 1:
		lease := r.milliseconds(2)
		a.grant = Grant{Token: r.token(1), Lease: max(lease, -lease), TTL: r.milliseconds(3), Fixed: lease < 0, Outermost: r.number(4) == 1, Ahead: len(r.values) > 5 && r.number(5) == 1}
		if len(r.values) > 6 {
			a.grant.Attempt = int(r.number(6))
		}
	case 2:
		by := r.number(2)
		busy := &Busy{Exact: by == 1 || by == 2, Done: by == 2, HandedOver: by == 3, New: r.number(4) == 1, Clock: Clock{Redis: r.microseconds(3)}}
		if ttl := r.milliseconds(1); ttl >= 0 {
			busy.Until = time.Now().Add(ttl)
		}
		a.refused = busy
	case 3:
		a.refused = ErrGone
	case 4:
		a.refused = errWithdrawn
	case 5:
		a.refused = errOtherKind
	case 6:
		a.refused = ErrUpgrade
	case 7:
		a.refused = &Answered{r.text(1)}
	case 8:
		a.refused = ErrReused
	case 9:
		a.refused = ErrOutcomeUnknown
	default:
		if r.err == nil {
			r.err = unexpected(reply)
		}
	}
	return a, r.err
}
