package store

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// AcquireAll is Acquire for several claims at once. It has done with each, in their order, when all are answered.
func (s *Store) AcquireAll(ctx context.Context, cs []*Claim, done func(i int, g Grant, err error)) {
	if s.Can.Differ {
		atOnce(s, len(cs), func(i int) (Grant, error) { return s.Acquire(ctx, cs[i]) }, done)
		return
	}
	commands := make([]*conn.Command, len(cs))
	for i, c := range cs {
		commands[i] = c.prepare(s)
	}
	s.servers[0].DoAll(ctx, commands, s.config.Timeout, func(i int, r conn.Reply, err error) {
		g, err := decoded(s.servers[0], commands[i], r, err, cs[i].decode)
		done(i, g, err)
	})
}

// ReleaseAll is Release for several holds at once. It has done with each, in their order, when all are answered.
func (s *Store) ReleaseAll(ctx context.Context, rs []*Release, timeout time.Duration, done func(i int, r Released, err error)) {
	if s.Can.Differ {
		atOnce(s, len(rs), func(i int) (Released, error) { return s.Release(ctx, *rs[i], timeout) }, done)
		return
	}
	commands := make([]*conn.Command, len(rs))
	for i, r := range rs {
		commands[i] = r.command(s, false)
	}
	s.servers[0].DoAll(ctx, commands, timeout, func(i int, r conn.Reply, err error) {
		released, err := decoded(s.servers[0], commands[i], r, err, decodeRelease)
		done(i, released, err)
	})
}

// atOnce asks the members of a quorum about each apart from the others.
func atOnce[A any](s *Store, n int, ask func(i int) (A, error), done func(int, A, error)) {
	answers, errs := make([]A, n), make([]error, n)
	var all sync.WaitGroup
	all.Add(n)
	for i := range n {
		s.config.Workers.Start(func() {
			defer all.Done()
			answers[i], errs[i] = ask(i)
		})
	}
	all.Wait()
	for i := range n {
		done(i, answers[i], errs[i])
	}
}
