package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

const (
	// A contended acquisition waits for the rest of the members so many times as long as the slower ones usually take.
	graceFactor = 3
	graceMin    = 5 * time.Millisecond
	againMin    = time.Millisecond
)

// election is a claim about which the members of a quorum vote: who grants it, and then who has its token.
type election struct {
	*Store
	ctx     context.Context
	claim   *Claim
	granted chan vote[Acquired] // has room for two votes of each member
	written chan vote[bool]     // for one

	token *decision[int64]     // the greatest of a majority's; 0: no majority grants it
	won   *decision[bool]      // a majority has that token
	held  *decision[StillHeld] // the lock that came of it
}

// elect asks all members for a lock. It returns as soon as it is decided, and goes on with those that answer later.
func (s *Store) elect(ctx context.Context, c *Claim) (Acquired, error) {
	admission, err := s.gate.Enter(ctx)
	if err != nil {
		return Acquired{}, err
	}
	e := &election{
		Store: s, ctx: ctx, claim: c, granted: make(chan vote[Acquired], 2*len(s.servers)), written: make(chan vote[bool], len(s.servers)),
		token: newDecision[int64](), won: newDecision[bool](), held: newDecision[StillHeld](),
	}
	c.election = e
	c.Resends.AddUnanswered(len(s.servers))
	for member := range s.servers {
		s.config.Workers.Start(func() { e.follow(member) })
	}
	g, err := e.count()
	if isFailure(err) {
		admission.Leave(err)
	} else {
		admission.Leave(nil)
	}
	e.token.make(g.Token)
	if err == nil {
		err = e.confirm()
	}
	e.won.make(err == nil)
	return g, err
}

// Decided says what became of a claim, for members of a quorum that grant it late: they get the token of the lock if
// that is still held then, else their grant is compensated. It is called once after each Acquire, and does not block.
func (c *Claim) Decided(lock StillHeld) {
	if c.election != nil { // what one Redis says is decided
		c.election.held.make(lock)
	}
}

// follow asks a member, and does there what follows from the votes of all.
func (e *election) follow(member int) {
	server := e.servers[member]
	g, err := e.ask(member)
	if err != nil {
		e.written <- vote[bool]{err: err}
		return
	}
	select {
	case <-e.won.made: // without this member: no release that follows can be relied on to end its grant
		switch lock := e.held.wait(); {
		case lock == nil:
			e.claim.Compensate(server)
			return
		case !lock.Held(): // its release ends this grant, too
			return
		}
	default:
	}
	if token := e.token.wait(); token != 0 {
		has := g.Token == token
		if !has { // it is a member less, if that fails
			has, err = e.raise(server, g.Token, token)
		}
		e.written <- vote[bool]{answer: has, err: err}
	}
	if !e.won.wait() {
		e.claim.Compensate(server)
	}
}

// ask asks a member. One that refuses is asked again, once, for a release may be on its way to it: but not when it may have refused
// a second copy of the claim, and is about to end the first.
func (e *election) ask(member int) (Acquired, error) {
	g, err := e.askOnce(member)
	if !isBusy(err) {
		return g, err
	}
	select {
	case <-e.token.made:
		return g, err
	case <-time.After(max(time.Duration(e.usual.Load()), againMin)):
	}
	if e.claim.Resends.HasCopies() {
		return g, err
	}
	e.claim.Resends.AddUnanswered(1)
	select {
	case <-e.token.made: // a release may have begun that knows of no claim under way
		e.claim.Resends.AddUnanswered(-1)
		return g, err
	default:
		return e.askOnce(member)
	}
}

// askOnce votes as a member answers. The claim awaits the answer already.
func (e *election) askOnce(member int) (Acquired, error) {
	defer e.claim.Resends.AddUnanswered(-1)
	asked := time.Now()
	g, err := do(e.ctx, e.servers[member], &e.claim.command, e.config.Timeout, e.claim.decode)
	if !isFailure(err) {
		e.took(time.Since(asked))
	}
	e.granted <- vote[Acquired]{member, g, err}
	return g, err
}

// raise gives the grant of a member the token of the lock. It is true when that grant is still there.
func (e *election) raise(server *conn.Server, granted, token int64) (bool, error) {
	words := []any{e.claim.Name.Lock(), e.claim.Name.clock(), e.claim.Owner, granted, int64(0), "raise", token}
	c := &conn.Command{Script: e.scripts.renew, Keys: 2, Words: words, Tag: fmt.Sprint(e.claim.Owner, granted), Urgent: true}
	return do(context.WithoutCancel(e.ctx), server, c, e.config.Timeout, yes)
}

// took notes how long a member took to vote. One that is slower than usual counts more; one that does not vote fades.
func (s *Store) took(d time.Duration) {
	usual, share := s.usual.Load(), int64(16)
	switch {
	case usual == 0:
		share = 1
	case int64(d) > usual:
		share = 4
	}
	s.usual.Store(usual + (int64(d)-usual)/share)
}

// count counts votes until they decide who has the lock.
//
// A claim that one member refuses waits for the others no longer than usual: contenders that keep a vote each until a
// dead member's time is over would block one another for as long.
func (e *election) count() (Acquired, error) {
	b := &ballot[Acquired]{members: len(e.servers)}
	var grace <-chan time.Time
	impatient := false
	for {
		select {
		case v := <-e.granted:
			b.votes = append(slices.DeleteFunc(b.votes, func(old vote[Acquired]) bool { return old.member == v.member }), v)
			if grace == nil && isBusy(v.err) {
				grace = time.After(max(graceFactor*time.Duration(e.usual.Load()), graceMin))
			}
		case <-grace:
			impatient = true
		}
		if g, decided, err := decideAcquire(b, impatient); decided {
			return g, err
		}
	}
}

// confirm waits until a majority has the token, so that the next majority meets a member that knows it. A member that
// votes late can take the place of one that fails meanwhile. Without a majority the claim is to be tried again while
// most members answer.
func (e *election) confirm() error {
	b := &ballot[bool]{members: len(e.servers)}
	for b.pending() > 0 {
		select {
		case v := <-e.written:
			b.votes = append(b.votes, v)
		case <-e.ctx.Done():
			return conn.Failed(conn.Ended(e.ctx))
		}
		if has := b.answers(func(has bool) bool { return has }); len(has) >= b.majority() {
			return nil
		}
	}
	if b.members-len(b.failures()) >= b.majority() {
		return &Busy{Split: true}
	}
	return conn.Failed(fmt.Errorf("the fencing token reached no majority: %w", b.noMajority()))
}

func isBusy(err error) bool {
	_, busy := err.(*Busy)
	return busy
}

// decideAcquire: held when a majority grants it, with the greatest token and the shortest ttl. When it is impatient,
// and contenders stand in the way, it is busy as soon as a majority has answered.
func decideAcquire(b *ballot[Acquired], impatient bool) (won Acquired, decided bool, err error) {
	grants := b.answers(func(Acquired) bool { return true })
	var busy []*Busy
	gone := 0
	for _, v := range b.votes {
		if refusal, ok := v.err.(*Busy); ok {
			busy = append(busy, refusal)
		} else if v.err == ErrGone {
			gone++
		}
	}
	most, answered := b.majority(), len(b.votes)-len(b.failures())
	// Somebody may have a majority yet; or it may turn out that the lock is held, which is not the same as unreachable.
	open := len(grants)+b.pending() >= most || answered < most && answered+b.pending() >= most
	switch {
	case len(grants) >= most:
		won = slices.MaxFunc(grants, func(a, b Acquired) int { return cmp.Compare(a.Token, b.Token) })
		for _, g := range grants {
			won.TTL = min(won.TTL, g.TTL)
			if g.Sent.Before(won.Sent) {
				won.Sent = g.Sent
			}
		}
		return won, true, nil
	case len(busy) > 0 && answered >= most && (impatient || !open):
		return won, true, busyUntil(busy, most-len(grants), len(grants) > 0)
	case open:
		return won, false, nil
	case gone >= most:
		return won, true, ErrGone
	default:
		return won, true, b.noMajority()
	}
}

// busyUntil says when enough of the members that refused will be free. It is split when others granted: then nobody may
// hold a majority.
func busyUntil(refusals []*Busy, enough int, split bool) *Busy {
	slices.SortFunc(refusals, func(a, b *Busy) int {
		if a.Until.IsZero() != b.Until.IsZero() {
			return b.Until.Compare(a.Until) // without an end is last
		}
		return a.Until.Compare(b.Until)
	})
	last := *refusals[min(enough, len(refusals))-1]
	last.Split = split
	return &last
}
