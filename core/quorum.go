package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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
	l.start(q)
	return l, nil
}

const quorumTimeout = 500 * time.Millisecond

// quorum is a backend of several independent Redis.
type quorum struct {
	tasks    *tasks
	nodes    []*node
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
func (q *quorum) ask(ctx context.Context, c *call, timeout time.Duration, s strays) ([]any, error) {
	arrived := make(chan vote, len(q.nodes))
	for _, n := range q.nodes {
		q.tasks.start(func() {
			values, err := n.exchange(ctx, c, timeout, s.undo)
			arrived <- vote{n, values, err}
		})
	}
	t := q.tally()
	for {
		t.votes = append(t.votes, <-arrived)
		values, err, decided := c.script.decide(t)
		if !decided {
			continue
		}
		if c.script == acquireScript {
			values, err = q.concludeAcquire(ctx, c, timeout, s, t, values, err)
		}
		q.watchLate(arrived, t, s, values, err)
		return values, err
	}
}

// concludeAcquire writes the token of a granted lock back, and undoes one that was
// not granted.
func (q *quorum) concludeAcquire(ctx context.Context, c *call, timeout time.Duration, s strays, t *tally, values []any, err error) ([]any, error) {
	if err == nil && isGrant(values) {
		if err = q.writeBack(ctx, c, timeout, t, text(values[1])); err == nil {
			return values, nil
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
// meets a member that knows it.
func (q *quorum) writeBack(ctx context.Context, c *call, timeout time.Duration, t *tally, token string) error {
	var behind []*node
	have := 0
	for _, v := range t.votes {
		switch {
		case v.err != nil || !isGrant(v.values):
		case text(v.values[1]) == token:
			have++
		default:
			behind = append(behind, v.node)
		}
	}
	if have >= q.majority {
		return nil
	}
	arrived := make(chan vote, len(behind))
	write := writeTokenCall(c, token)
	for _, n := range behind {
		q.tasks.start(func() {
			values, err := n.exchange(ctx, write, timeout, nil)
			arrived <- vote{n, values, err}
		})
	}
	var errs []error
	for range behind {
		v := <-arrived
		if v.err == nil && number(v.values[0]) == 1 {
			have++
		} else if v.err != nil {
			errs = append(errs, v.err)
		}
		if have >= q.majority {
			return nil
		}
	}
	return fmt.Errorf("the fencing token reached no majority: %w", errors.Join(errs...))
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
	for _, n := range q.nodes {
		n.outbox.add(&delivery{call: d.call, timeout: d.timeout, to: recipientFunc(func(values []any, err error, sent time.Time) {
			mu.Lock()
			defer mu.Unlock()
			if first.IsZero() || sent.Before(first) {
				first = sent
			}
			t.votes = append(t.votes, vote{n, values, err})
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
