package store

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// quorum is a Store on several independent Redis, which vote.
type quorum struct {
	*Store
	majority int
	usual    []atomic.Int64 // how long each takes to answer, in ns; 0: it never has
}

// answered notes how long a member took to answer. What is known of one that does not
// answer fades.
func (q *quorum) answered(member int, took time.Duration, err error) {
	if err != nil {
		took = 0
	}
	usual := &q.usual[member]
	if old := usual.Load(); old == 0 {
		usual.Store(int64(took))
	} else {
		usual.Store(old + (int64(took)-old)/4)
	}
}

// usualTime is how long the slowest member usually takes to answer.
func (q *quorum) usualTime() time.Duration {
	slowest := time.Duration(0)
	for i := range q.usual {
		slowest = max(slowest, time.Duration(q.usual[i].Load()))
	}
	return slowest
}

// ballot is a command that all members are asked to do at once.
type ballot[T any] struct {
	tally[T]
	quorum  *quorum
	send    func(member int)
	arrived chan vote[T] // has room for all that are awaited
}

func newBallot[T any](ctx context.Context, q *quorum, c *conn.Command, timeout time.Duration, decode func(reply any) (T, error)) *ballot[T] {
	b := &ballot[T]{
		quorum:  q,
		tally:   tally[T]{total: len(q.servers), majority: q.majority},
		arrived: make(chan vote[T], len(q.servers)),
	}
	b.send = func(member int) {
		q.config.Workers.Start(func() {
			began := time.Now()
			answer, _, err := do(ctx, q.servers[member], c, timeout, decode)
			if err == nil || ctx.Err() == nil {
				q.answered(member, time.Since(began), err)
			}
			b.arrived <- vote[T]{member, answer, err}
		})
	}
	for member := range q.servers {
		b.send(member)
	}
	return b
}

// decide counts votes until they decide, and does not wait for the rest.
func (b *ballot[T]) decide(decide func(*tally[T]) (T, bool, error)) (T, error) {
	for {
		b.votes = append(b.votes, <-b.arrived)
		if answer, decided, err := decide(&b.tally); decided {
			return answer, err
		}
	}
}

// late hears the votes that come after the decision. It does not block.
func (b *ballot[T]) late(hear func(vote[T])) {
	if pending := b.pending(); pending > 0 {
		b.quorum.config.Workers.Start(func() {
			for range pending {
				hear(<-b.arrived)
			}
		})
	}
}

func (q *quorum) release(ctx context.Context, r Release, timeout time.Duration) (Released, error) {
	b := newBallot(ctx, q, r.command(q.Store, false), timeout, decodeRelease)
	released, err := b.decide(decideRelease)
	if err != nil {
		return released, err
	}
	missed := func(v vote[Released]) {
		if v.err != nil {
			q.compensate(q.servers[v.member:v.member+1], r)
		}
	}
	for _, v := range b.votes {
		missed(v)
	}
	b.late(missed)
	return released, nil
}

func (q *quorum) renew(r *renewal) {
	r.to = &renewalVotes{tally: tally[bool]{total: len(q.servers), majority: q.majority}, to: r.to}
	for _, server := range q.servers {
		queued := r.queued
		server.Queue(&queued)
	}
}
