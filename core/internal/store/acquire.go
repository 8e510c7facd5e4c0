package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Claim is one attempt to take a lock, or to enter one that its owner holds. It serves one Acquire and is not changed
// afterwards.
type Claim struct {
	Holding
	Terms
	Way
	Wait    WaitMode        // when the lock is busy; NotWaiting in a quorum
	Context context.Context // of the call, for its compensation
	Resends conn.Resends    // whether a copy may arrive beside the one that was answered

	store    *Store
	command  conn.Command
	words    [6]any    // room for most
	election *election // of a quorum's claim
}

// WaitMode says how a claim waits in the queue of a lock that is busy.
type WaitMode int8

const (
	NotWaiting WaitMode = iota
	Listening           // a message tells the process when the lock is granted to the hold
	Polling             // no message arrives: the hold is granted the lock, and finds out when it asks again
)

// Acquired is a lock that was taken or entered.
type Acquired struct {
	Terms                   // as Redis has them; the window is that which was asked for
	Token     int64         // fencing token
	TTL       time.Duration // what was left when Redis answered; less than the lease for a fixed one that was entered
	Outermost bool          // it was free before
	Ahead     bool          // the token is ahead of the clock of Redis
	Attempt   int           // its number, of a claim for one
	Sent      time.Time     // a time before Redis was asked: the TTL was true after it
}

// Busy says that somebody else has the lock.
type Busy struct {
	Until time.Time // when it ends if nobody prolongs it; zero: it has no end
	Why   BusyReason
	New   bool  // the hold was not in the queue before
	Split bool  // some members of a quorum granted it: contenders block each other
	Clock Clock // of the Redis that said so; not of a quorum
}

// BusyReason is what a lock is that somebody else has, in the numbers of busy.lua and acquire.lua.
type BusyReason int8

const (
	HolderMayProlong BusyReason = iota
	HolderIsFixed               // nothing prolongs it
	InDedupWindow               // nobody holds it, and nothing prolongs it
	HandedOver                  // for whoever has the ticket, if nobody has resumed it yet
	HolderIsForeign             // another library has it: nobody tells of its end
)

func (b *Busy) Error() string { return "the lock is busy" }

// StillHeld says whether what came of a claim, if anything, is held. It may be asked on any goroutine.
type StillHeld interface{ Held() bool }

// Attempt is one at an idempotent request.
type Attempt struct {
	Request string        // a digest, in hexadecimal digits
	Known   time.Duration // for how long, that it was made
	Refuse  bool          // where nobody knows whether the last attempt has done its work
}

// Answer is what a request was answered.
type Answer struct {
	Text string
	Keep time.Duration // for how long
}

// Answered says that an earlier attempt has an answer. It is an error.
type Answered struct{ Answer string }

func (*Answered) Error() string { return "the request was answered before" }

var (
	// ErrUpgrade says that the owner has the lock in a form that does not include the other.
	ErrUpgrade = errors.New("the owner holds the lock in another form")
	// ErrGone says that the lock to enter is gone, or that there is none for the ticket, or that the claim was
	// given up before it arrived.
	ErrGone = errors.New("the lock to enter is gone")
	// ErrWithheld says that nothing was done about a claim, for a lock of its call is taken.
	ErrWithheld = errors.New("another lock is busy")
	// ErrReused says that the lock is of another request.
	ErrReused = errors.New("core: the key was used for another request")
	// ErrOutcomeUnknown says that nobody knows whether the last attempt has done its work.
	ErrOutcomeUnknown = errors.New("core: the outcome of the last attempt is unknown")

	errOfKind    = errors.New("the name has a lock of another kind, as Redisson's getReadWriteLock makes")
	errOtherKind = &conn.Failure{Outcome: conn.Refused, Cause: errOfKind}
	errGivenUp   = fmt.Errorf("%w: the claim was given up before it arrived", ErrGone) // its hold has a tombstone
)

// CompensateAll compensates a claim that was granted and is not wanted any more, with every server. lease is the lock's.
func (c *Claim) CompensateAll(lease time.Duration) { c.compensateAt(lease, c.store.servers...) }

// Compensate is CompensateAll for one server, whose answer nobody has heard.
func (c *Claim) Compensate(server *conn.Server) { c.compensateAt(c.Lease, server) }

func (c *Claim) compensateAt(lease time.Duration, servers ...*conn.Server) {
	r := Release{
		Holding: c.Holding, Terms: c.Terms, Work: Failed, MayArrive: true, Until: time.Now().Add(lease + tombstoneLife), Context: c.Context,
	}
	c.store.compensateAt(r, servers...)
}

func (c *Claim) prepare(s *Store) *conn.Command {
	words := c.Name.words(c.words[:], c.Owner)
	lease := leaseArg(c.Lease, c.Fixed)
	merges := int8(0) // see conn.Command
	how, more := "take", []any(nil)
	switch {
	case c.Ticket != "":
		how, more = "resume", []any{digest(c.Ticket)}
	case c.Attempt != nil:
		how, more = "attempt", []any{c.Attempt.Request, c.Attempt.Known.Milliseconds(), c.Attempt.Refuse}
	case c.Enter != 0:
		how, more = "enter", []any{c.Enter}
	}
	switch {
	case !c.isSimple():
		words = slices.Concat(words, []any{lease, int64(c.Wait), c.Hold, c.Window.Milliseconds(), how, c.Form.word()}, more)
	case c.Lease != usualLease || c.Wait != Listening:
		words, merges = append(words, lease, int64(c.Wait)), 2
	default:
		merges = 1
	}
	c.store = s
	c.command = conn.Command{Script: s.scripts.acquire, Keys: 3, Words: words, Tag: c.Hold, MergedArgs: merges}
	c.command.Resends, c.command.Compensator = &c.Resends, c
	return &c.command
}

// decode reads the reply to a claim.
func (c *Claim) decode(from conn.Reply) (Acquired, error) {
	if text, ok := from.Value.(string); ok {
		token, err := parseToken(text)
		return Acquired{Terms: c.Terms, Token: token, TTL: c.Lease, Outermost: true, Sent: from.Sent}, err
	}
	r := reply{value: from.Value}
	var refused error
	switch said, text := r.verdict(), r.text(); said {
	case saidAcquired:
		token, err := parseToken(text)
		g := Acquired{Terms: c.Terms, Token: token, TTL: r.ttl(), Outermost: r.detail() == 1,
			Ahead: token > r.time().Microseconds(), Attempt: r.number(), Sent: from.Sent}
		lease := r.lease()
		g.Form, g.Lease, g.Fixed = c.formOf(c.Form), max(lease, -lease), lease < 0
		return g, cmp.Or(r.err, err)
	case saidBusy:
		b := &Busy{Why: BusyReason(r.detail()), New: r.number() == 1, Clock: Clock{r.time(), from.Sent}}
		if ttl := r.ttl(); ttl >= 0 {
			b.Until = time.Now().Add(ttl)
		}
		refused = b
	case saidAnswered:
		refused = &Answered{text}
	default:
		refused = refusals[said]
		if refused == nil {
			r.foreign()
		}
	}
	return Acquired{}, cmp.Or(r.err, refused)
}

var refusals = map[verdict]error{
	saidGone:           ErrGone,
	saidGivenUp:        errGivenUp,
	saidOtherKind:      errOtherKind,
	saidOtherForm:      ErrUpgrade,
	saidReused:         ErrReused,
	saidUnknownOutcome: ErrOutcomeUnknown,
}
