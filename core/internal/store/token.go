package store

import (
	"fmt"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// writeToken makes a member give the lock a greater token than the one that it gave.
func (c *Claim) writeToken(given, token int64) *conn.Command {
	return &conn.Command{
		Script: c.store.scripts.renew,
		Keys:   2,
		Words:  []any{c.Name.Lock(), c.Name.clock(), c.Owner, given, noTime, "raise", token},
	}
}

// writeBack gives the token of a lock to a majority, so that the next majority
// meets a member that knows it. Members that have not voted yet may take the place of
// one that fails meanwhile; what is heard of them joins the votes.
func (e *election) writeBack(won answer) (answer, error) {
	have, asked := 0, 0
	var failed []error
	written := make(chan vote[bool], e.total)
	count := func(v vote[answer]) {
		switch {
		case v.err != nil || !v.answer.isGrant():
		case v.answer.grant.Token == won.grant.Token:
			have++
		default:
			asked++
			write := e.claim.writeToken(v.answer.grant.Token, won.grant.Token)
			e.quorum.config.Workers.Start(func() {
				has, _, err := do(e.ctx, e.quorum.servers[v.member], write, e.timeout, yes)
				written <- vote[bool]{v.member, has, err}
			})
		}
	}
	for _, v := range e.votes {
		count(v)
	}
	for have < e.majority {
		if have+asked+e.pending() < e.majority {
			if e.ctx.Err() != nil {
				return answer{}, conn.Failed(conn.Ended(e.ctx))
			}
			return withoutToken(&e.tally, failed)
		}
		select {
		case v := <-written:
			asked--
			switch {
			case v.err != nil:
				failed = append(failed, v.err)
			case v.answer:
				have++
			}
		case v := <-e.arrived:
			e.votes = append(e.votes, v)
			count(v)
		}
	}
	return won, nil
}

// withoutToken is the outcome of an acquisition that was granted but whose token reached
// no majority: to be tried again while a majority answers.
func withoutToken(t *tally[answer], failed []error) (answer, error) {
	if len(t.all())-len(failed) >= t.majority {
		return answer{refused: &Busy{Split: true}}, nil
	}
	return answer{}, conn.Failed(fmt.Errorf("the fencing token reached no majority: %w", t.noMajority(failed...)))
}
