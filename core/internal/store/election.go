package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	// A contended acquisition waits for the rest of the members so many times as long as
	// the slowest usually takes.
	graceFactor = 3
	graceMin    = 5 * time.Millisecond
	againMin    = time.Millisecond
)

// election is a claim that the members of a quorum vote about.
type election struct {
	*ballot[answer]
	ctx     context.Context
	claim   *Claim
	timeout time.Duration
}

// acquire asks all members at once and returns as soon as their answers decide it.
func (q *quorum) acquire(ctx context.Context, c *Claim) (Grant, error) {
	timeout := q.config.Timeout
	c.verdict = &verdict{decided: make(chan struct{})}
	sent := time.Now()
	e := election{newBallot(ctx, q, &c.command, timeout, c.decode), ctx, c, timeout}
	a, err := e.count()
	if err == nil && a.isGrant() {
		a, err = e.writeBack(a)
	}
	granted := err == nil && a.isGrant()
	if !granted {
		for _, v := range e.votes {
			if v.err == nil && v.answer.isGrant() {
				c.Compensate(q.servers[v.member])
			}
		}
	}
	e.late(func(v vote[answer]) {
		switch server := q.servers[v.member]; {
		case v.err != nil || !v.answer.isGrant():
		case granted:
			c.grantedLate(server, v.answer.grant.Token, a.grant.Token)
		default:
			c.Compensate(server)
		}
	})
	return a.at(sent, err)
}

// count counts votes until they decide.
//
// A claim that has one vote and one refusal asks those again that refused, once,
// for a release may be on its way to them. Then it waits for the others no longer than
// usual: contenders that keep a vote each until a dead member's time is over would block
// one another for as long.
func (e *election) count() (answer, error) {
	var again, grace <-chan time.Time
	impatient := false
	for {
		select {
		case v := <-e.arrived:
			e.votes = append(e.votes, v)
		case <-again:
			if e.claim.Resends.MayArriveTwice() {
				continue // what refused a second copy of it is about to end the first
			}
			for _, member := range e.forgetRefusals() {
				e.send(member)
			}
		case <-grace:
			impatient = true
		}
		a, decided, err := decideAcquire(&e.tally, impatient)
		if decided {
			return a, err
		}
		if grace == nil && len(e.answers(answer.isBusy)) > 0 {
			usual := e.quorum.usualTime()
			again = time.After(max(usual, againMin))
			grace = time.After(max(graceFactor*usual, graceMin))
		}
	}
}

// forgetRefusals takes the votes of those out that refused, and returns who they are.
func (e *election) forgetRefusals() []int {
	var members []int
	e.votes = slices.DeleteFunc(e.votes, func(v vote[answer]) bool {
		refused := v.err == nil && v.answer.isBusy()
		if refused {
			members = append(members, v.member)
		}
		return refused
	})
	return members
}

// decideAcquire: held when a majority grants it, with the greatest token and the
// shortest ttl. When it is impatient, and contenders stand in the way, it is busy as
// soon as a majority has answered.
func decideAcquire(t *tally[answer], impatient bool) (a answer, decided bool, err error) {
	grants := t.answers(answer.isGrant)
	if len(grants) >= t.majority {
		best := slices.MaxFunc(grants, func(a, b answer) int { return cmp.Compare(a.grant.Token, b.grant.Token) })
		for _, g := range grants {
			best.grant.TTL = min(best.grant.TTL, g.grant.TTL)
		}
		return best, true, nil
	}
	answered, busy := len(t.all()), t.answers(answer.isBusy)
	contended := len(busy) > 0
	switch {
	case contended && impatient && answered >= t.majority:
		return busyUntil(t, busy, len(grants)), true, nil
	case len(grants)+t.pending() >= t.majority:
		return a, false, nil
	case answered < t.majority && answered+t.pending() >= t.majority:
		return a, false, nil // held or unreachable, that is not the same
	case answered < t.majority:
		return a, true, t.noMajority()
	case contended:
		return busyUntil(t, busy, len(grants)), true, nil
	case len(t.answers(func(a answer) bool { return a.refused == ErrGone })) > t.total-t.majority:
		return answer{refused: ErrGone}, true, nil
	default:
		return a, true, t.noMajority()
	}
}

// busyUntil says when enough of the members that refused will be free, besides those that
// granted. It is split when some did: then nobody may hold a majority.
func busyUntil(t *tally[answer], refusals []answer, grants int) answer {
	all := make([]*Busy, len(refusals))
	for i, r := range refusals {
		all[i] = r.refused.(*Busy)
	}
	slices.SortFunc(all, func(a, b *Busy) int {
		if a.Until.IsZero() != b.Until.IsZero() {
			return b.Until.Compare(a.Until) // without an end is last
		}
		return a.Until.Compare(b.Until)
	})
	last := all[min(t.majority-grants, len(all))-1]
	return answer{refused: &Busy{Until: last.Until, Exact: last.Exact, Done: last.Done, Split: grants > 0}}
}
