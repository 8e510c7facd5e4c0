package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// NewQuorum returns a Locker on several independent Redis masters. A lock is held
// when a majority of them has granted it, so that it works while most of them do.
// The algorithm is Redlock (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/)
// with renewal, wake-ups and a fencing token that is the same for all members. See
// docs/guarantees.md for what that promises and what not: the members must not be
// replicas of one another, and one that loses its data must stay away for a lease.
//
// It takes an odd number of clients, three or more, none of them twice, and the
// options of [New]. The default [Timeout] for each member is 500 ms or a tenth of
// the lease, whichever is less. No majority reachable is [ErrUnavailable]; a
// majority reachable, but the lock held, is [ErrNotAcquired]. It does no network
// I/O and starts no goroutine.
func NewQuorum(clients []redis.UniversalClient, opts ...Option) (*Locker, error) {
	if len(clients) < 3 || len(clients)%2 == 0 {
		return nil, fmt.Errorf("core: NewQuorum needs an odd number of clients, at least 3, got %d", len(clients))
	}
	for i, c := range clients {
		if isNil(c) {
			return nil, fmt.Errorf("core: NewQuorum: client %d is nil", i)
		}
		if slices.ContainsFunc(clients[:i], func(other redis.UniversalClient) bool { return sameRedis(c, other) }) {
			return nil, fmt.Errorf("core: NewQuorum: client %d is there twice, and would have two votes", i)
		}
	}
	l, err := newLocker(opts, func(s *settings) time.Duration { return min(quorumTimeout, s.lease/10) })
	if err != nil {
		return nil, err
	}
	if l.defaults.replicas != (replication{}) {
		return nil, errors.New("core: NewQuorum takes no Replicas: its members vouch for one another")
	}
	q := &quorum{tasks: &l.tasks, majority: len(clients)/2 + 1}
	for _, c := range clients {
		q.nodes = append(q.nodes, newNode(c, l, replication{}))
	}
	q.usual = make([]atomic.Int64, len(q.nodes))
	l.start(q)
	return l, nil
}

const (
	quorumTimeout = 500 * time.Millisecond

	// A contended acquisition waits for the rest of the members so many times as long as
	// the slowest usually takes.
	graceFactor = 3
	graceMin    = 5 * time.Millisecond
	againMin    = time.Millisecond
)

// quorum is a backend of several independent Redis.
type quorum struct {
	tasks    *tasks
	nodes    []*node
	usual    []atomic.Int64 // how long each takes to answer, in ns; 0: it never has
	majority int
}

func (q *quorum) members() []*node { return q.nodes }

func (q *quorum) flush() {
	for _, n := range q.nodes {
		n.outbox.flush()
	}
}

// ask runs a call on all members at once and returns as soon as their answers
// decide it.
//
// An acquisition that has one vote and one refusal asks those again that refused, once,
// for a release may be on its way to them. Then it waits for the others no longer than
// usual: contenders that keep a vote each until a dead member's time is over would block
// one another for as long.
func (q *quorum) ask(ctx context.Context, c *call, timeout time.Duration, s strays) ([]any, error) {
	arrived := make(chan vote, len(q.nodes))
	send := func(member int) {
		q.tasks.start(func() {
			began := time.Now()
			values, err := q.nodes[member].exchange(ctx, c, timeout, s.undo)
			if err == nil || ctx.Err() == nil {
				q.answered(member, time.Since(began), err)
			}
			arrived <- vote{member, q.nodes[member], values, err}
		})
	}
	for member := range q.nodes {
		send(member)
	}
	t := q.tally()
	var again, grace <-chan time.Time
	for {
		select {
		case v := <-arrived:
			t.votes = append(t.votes, v)
		case <-again:
			if c.again.doubled.Load() {
				continue // what refused a second copy of it is withdrawing the first
			}
			for _, member := range t.forgetRefusals() {
				send(member)
			}
		case <-grace:
			t.impatient = true
		}
		values, err, decided := c.script.decide(t)
		if !decided {
			if grace == nil && c.script == acquireScript && t.contended() {
				usual := q.usualTime()
				again = time.After(max(usual, againMin))
				grace = time.After(max(graceFactor*usual, graceMin))
			}
			continue
		}
		if c.script == acquireScript {
			values, err = q.concludeAcquire(ctx, c, timeout, s, t, arrived, values, err)
		}
		q.watchLate(arrived, t, s, values, err)
		return values, err
	}
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

// concludeAcquire writes the token of a granted lock back, and undoes one that was
// not granted.
func (q *quorum) concludeAcquire(ctx context.Context, c *call, timeout time.Duration, s strays, t *tally, arrived <-chan vote, values []any, err error) ([]any, error) {
	if err == nil && isGrant(values) {
		if q.writeBack(ctx, c, timeout, t, arrived, text(values[1])) {
			return values, nil
		}
		if values, err = t.withoutToken(); ctx.Err() != nil {
			values, err = nil, ended(ctx)
		}
	}
	for _, v := range t.votes {
		if v.err == nil && isGrant(v.values) {
			s.undo(v.node)
		}
	}
	return values, err
}

// writeBack gives the token of a lock to a majority, so that the next majority
// meets a member that knows it. Members that have not voted yet may take the place of
// one that fails meanwhile; what is heard of them goes into the tally.
func (q *quorum) writeBack(ctx context.Context, c *call, timeout time.Duration, t *tally, arrived <-chan vote, token string) bool {
	have, under := 0, 0 // under way
	written := make(chan vote, len(q.nodes))
	write := writeTokenCall(c, token)
	count := func(v vote) {
		switch {
		case v.err != nil || !isGrant(v.values):
		case text(v.values[1]) == token:
			have++
		default:
			under++
			q.tasks.start(func() {
				values, err := v.node.exchange(ctx, write, timeout, nil)
				written <- vote{v.member, v.node, values, err}
			})
		}
	}
	for _, v := range t.votes {
		count(v)
	}
	for have < q.majority {
		if have+under+t.pending() < q.majority {
			return false
		}
		select {
		case v := <-written:
			under--
			if v.err == nil && number(v.values[0]) == 1 {
				have++
			} else if v.err != nil {
				t.failed = append(t.failed, v)
			}
		case v := <-arrived:
			t.votes = append(t.votes, v)
			count(v)
		}
	}
	return true
}

func writeTokenCall(acquisition *call, token string) *call {
	return writeTokenScript.call(2, acquisition.lock, acquisition.words[1], acquisition.words[7], token, tokenKept)
}

// watchLate deals with members that failed, or that answer after the outcome was
// decided.
func (q *quorum) watchLate(arrived <-chan vote, t *tally, s strays, values []any, err error) {
	if s.missed != nil && err == nil {
		for _, v := range t.votes {
			if v.err != nil {
				s.missed(v.node)
			}
		}
	}
	if t.pending() == 0 || s.late == nil && s.missed == nil {
		return
	}
	granted := err == nil && isGrant(values)
	q.tasks.start(func() {
		for range t.pending() {
			switch v := <-arrived; {
			case v.err != nil && s.missed != nil && err == nil:
				s.missed(v.node)
			case v.err != nil || s.late == nil || !isGrant(v.values):
			case granted:
				s.late(v.node, text(v.values[1]))
			default:
				s.undo(v.node)
			}
		}
	})
}

// post sends a call of the background to all members and reports once, when
// their answers decide it.
func (q *quorum) post(d *delivery) {
	var mu sync.Mutex
	t := q.tally()
	reported := false
	first := time.Time{}
	for member, n := range q.nodes {
		n.outbox.add(&delivery{call: d.call, timeout: d.timeout, to: recipientFunc(func(values []any, err error, sent time.Time) {
			mu.Lock()
			defer mu.Unlock()
			if first.IsZero() || sent.Before(first) {
				first = sent
			}
			t.votes = append(t.votes, vote{member, n, values, err})
			if reported {
				return
			}
			if values, err, decided := d.call.script.decide(t); decided {
				reported = true
				d.report(answer{values: values, err: err}, first)
			}
		})})
	}
}

type recipientFunc func(values []any, err error, sent time.Time)

func (f recipientFunc) receive(values []any, err error, sent time.Time) { f(values, err, sent) }
