package store

import (
	"cmp"
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// AcquireAll is Acquire for several claims at once, which have one hold. It has done with each, in their order, when all
// are answered. Where one command can take all, whole has it take all or none: then each fails with [ErrWithheld].
func (s *Store) AcquireAll(ctx context.Context, cs []Claim, whole bool, done func(i int, g Grant, err error)) {
	if s.Can.Differ {
		atOnce(s, len(cs), func(i int) (Grant, error) { return s.Acquire(ctx, &cs[i]) }, done)
		return
	}
	server := s.servers[0]
	together := s.together(cs)
	if c := together; c != nil {
		r, err := server.Do(ctx, c, s.config.Timeout)
		copied, undone := c.Resends.MayArriveTwice(), isUndone(r, err)
		if !undone || copied || whole && r.Value == "0" {
			g := Grant{}
			if undone { // if copied, it has been compensated
				err = ErrWithheld
			} else {
				g, err = decoded(server, c, r, err, cs[0].decode)
			}
			for i := range cs {
				if copied {
					cs[i].Resends.Copied()
				}
				done(i, g, err)
			}
			return
		}
	}
	commands := make([]*conn.Command, len(cs))
	for i := range cs {
		if commands[i] = cs[i].prepare(s); together != nil {
			commands[i].Merges = 0 // that was in vain
		}
	}
	server.DoAll(ctx, commands, s.config.Timeout, func(i int, r conn.Reply, err error) {
		g, err := decoded(server, commands[i], r, err, cs[i].decode)
		done(i, g, err)
	})
}

// together is one command for several claims; nil: there is none.
func (s *Store) together(cs []Claim) *conn.Command {
	n, first := len(cs), &cs[0]
	if n < 2 || !s.servers[0].Merges() {
		return nil
	}
	c := &conn.Command{Script: &s.scripts.acquire.Merged.Script, Keys: int16(3 * n), Merges: 1, Resends: new(conn.Resends), Compensator: claims(cs)}
	c.Words = make([]any, 3*n, 3*n+2)
	for i := range cs {
		one := &cs[i]
		if !one.isShort() || one.Lease != first.Lease {
			return nil
		}
		one.store = s
		c.Words[i], c.Words[n+i], c.Words[2*n+i] = one.Name.Lock(), one.Name.waiting(), one.Name.clock()
	}
	if c.Words, c.Name = append(c.Words, first.Owner), first.Owner; first.Lease != usualLease {
		c.Words, c.Merges = append(c.Words, leaseArg(first.Lease, false)), 2
	}
	return c
}

// isUndone says that a command of several locks has done nothing, perhaps because of one of them.
func isUndone(r conn.Reply, err error) bool {
	if err == nil {
		return r.Value == nil || r.Value == "0"
	}
	return conn.Failed(err).Outcome == conn.Refused && !conn.IsClosed(err) && !conn.Passes(err) // whatever became of earlier copies
}

// claims are those of one command.
type claims []Claim

// Compensate is that of each.
func (cs claims) Compensate(server *conn.Server) {
	for i := range cs {
		cs[i].Compensate(server)
	}
}

// ReleaseAll is Release for several holds at once. It has done with each, in their order, when all are answered.
func (s *Store) ReleaseAll(ctx context.Context, rs []*Release, timeout time.Duration, done func(i int, r Released, err error)) {
	if s.Can.Differ {
		atOnce(s, len(rs), func(i int) (Released, error) { return s.Release(ctx, *rs[i], timeout) }, done)
		return
	}
	end, together := time.Now().Add(timeout), s.freeAll(rs)
	if c := together; c != nil {
		if r, err := s.servers[0].Do(ctx, c, timeout); !isUndone(r, err) {
			each := reply{value: r.Value}
			for i := range rs {
				released, unread := decodeRelease(conn.Reply{Value: at[string](&each, i)})
				done(i, released, cmp.Or(err, each.err, unread))
			}
			return
		}
	}
	all, commands := make([]releaseCommand, len(rs)), make([]*conn.Command, len(rs))
	for i, r := range rs {
		if commands[i] = r.command(s, &all[i], false); together != nil {
			commands[i].Merges = 0 // that was in vain
		}
	}
	s.servers[0].DoAll(ctx, commands, time.Until(end), func(i int, r conn.Reply, err error) {
		released, err := decoded(s.servers[0], commands[i], r, err, decodeRelease)
		released.Found = released.Found || commands[i].Resends.MayArriveTwice()
		done(i, released, err)
	})
}

// freeAll is one command for several releases; nil: there is none.
func (s *Store) freeAll(rs []*Release) *conn.Command {
	n, first := len(rs), rs[0]
	if n < 2 || !s.servers[0].Merges() {
		return nil
	}
	words := make([]any, n, n+2)
	for i, r := range rs {
		if !r.isShort() || r.Owner != first.Owner || r.Token != first.Token || r.Lease != first.Lease {
			return nil
		}
		words[i] = r.Name.Lock()
	}
	words = append(words, first.Owner, plainMode(nil, first.Token, first.Lease))
	return &conn.Command{Script: &s.scripts.release.Merged.Script, Keys: int16(n), Words: words, Name: first.Owner, Merges: 2}
}
