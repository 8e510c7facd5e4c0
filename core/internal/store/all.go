package store

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// AcquireAll is Acquire for several claims at once. It has done with each, in their order, when
// all are answered.
func (s *Store) AcquireAll(ctx context.Context, cs []*Claim, done func(i int, g Grant, err error)) {
	commands := make([]*conn.Command, len(cs))
	for i, c := range cs {
		c.prepare(s)
		commands[i] = &c.command
	}
	if _, isQuorum := s.redis.(*quorum); isQuorum {
		atOnce(s, cs, func(c *Claim) (Grant, error) { return s.redis.acquire(ctx, c) }, done)
		return
	}
	s.servers[0].DoAll(ctx, commands, s.config.Timeout, func(i int, r conn.Reply, err error) {
		a, sent, err := decoded(s.servers[0], commands[i], r, err, cs[i].decode)
		g, err := a.at(sent, err)
		done(i, g, err)
	})
}

// ReleaseAll is Release for several holds at once. It has done with each, in their order, when
// all are answered.
func (s *Store) ReleaseAll(ctx context.Context, rs []Release, timeout time.Duration, done func(i int, r Released, err error)) {
	if _, isQuorum := s.redis.(*quorum); isQuorum {
		atOnce(s, rs, func(r Release) (Released, error) { return s.redis.release(ctx, r, timeout) }, done)
		return
	}
	commands := make([]*conn.Command, len(rs))
	for i, r := range rs {
		commands[i] = r.command(s, false)
	}
	s.servers[0].DoAll(ctx, commands, timeout, func(i int, r conn.Reply, err error) {
		released, sent, err := decoded(s.servers[0], commands[i], r, err, decodeRelease)
		released.Clock.Sent = sent
		done(i, released, err)
	})
}

// atOnce asks the members of a quorum about each apart from the others.
func atOnce[Q, A any](s *Store, questions []Q, ask func(Q) (A, error), done func(int, A, error)) {
	answers, errs := make([]A, len(questions)), make([]error, len(questions))
	var all sync.WaitGroup
	for i, q := range questions {
		all.Add(1)
		s.config.Workers.Start(func() {
			defer all.Done()
			answers[i], errs[i] = ask(q)
		})
	}
	all.Wait()
	for i := range questions {
		done(i, answers[i], errs[i])
	}
}
