package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Result is what came of one of several claims or releases: an answer, or an error.
type Result[A any] struct {
	Answer A
	Err    error
}

// AcquireAll is Acquire for several claims at once, which have one hold. It returns their results, in their order, when all
// are answered. With allOrNone it takes all or none where one command can: then each fails with [ErrWithheld]. A quorum is asked for
// each lock by itself.
func (s *Store) AcquireAll(ctx context.Context, cs []Claim, allOrNone bool) []Result[Acquired] {
	if s.IsQuorum() {
		return atOnce(s, len(cs), func(i int) (Acquired, error) { return s.Acquire(ctx, &cs[i]) })
	}
	together := s.takeAllCommand(cs)
	if together != nil {
		r, err := s.servers[0].Do(ctx, together, s.config.Timeout)
		copied, undone := together.Resends.MayArriveTwice(), didNothing(r, err)
		for i := range cs {
			if copied {
				cs[i].Resends.Copied()
			}
		}
		all := Result[Acquired]{Err: ErrWithheld}
		if !undone {
			all.Answer, all.Err = decoded(s.servers[0], together, r, err, cs[0].decode)
		}
		if !undone || copied || allOrNone && r.Value == oneIsTaken { // a copy is compensated, which ends the hold
			return slices.Repeat([]Result[Acquired]{all}, len(cs))
		}
	}
	results, commands := make([]Result[Acquired], len(cs)), make([]*conn.Command, len(cs))
	for i := range cs {
		if commands[i] = cs[i].prepare(s); together != nil {
			commands[i].MergedArgs = 0 // the merged script has just declined it
		}
	}
	s.servers[0].DoAll(ctx, commands, s.config.Timeout, func(i int, r conn.Reply, err error) {
		results[i].Answer, results[i].Err = decoded(s.servers[0], commands[i], r, err, cs[i].decode)
	})
	return results
}

// takeAllCommand is one command for several claims; nil: no command can do what they ask for.
func (s *Store) takeAllCommand(cs []Claim) *conn.Command {
	n, first := len(cs), &cs[0]
	if n < 2 || !s.servers[0].Merges() {
		return nil
	}
	c := &takeAll{claims: cs}
	c.Script, c.Keys, c.Words = s.scripts.acquire.Merged, int16(3*n), make([]any, 3*n, 3*n+2)
	c.Tag, c.MergedArgs, c.Resends, c.Compensator = first.Owner, 1, &c.resends, c
	for i := range cs {
		one := &cs[i]
		if !one.isSimple() || one.Terms != first.Terms {
			return nil
		}
		one.store = s
		c.Words[i], c.Words[n+i], c.Words[2*n+i] = one.Name.Lock(), one.Name.queue(), one.Name.clock()
	}
	if c.Words = append(c.Words, first.Owner); first.Lease != usualLease {
		c.Words, c.MergedArgs = append(c.Words, leaseArg(first.Lease, false)), 2
	}
	return &c.Command
}

type takeAll struct {
	conn.Command
	resends conn.Resends
	claims  []Claim
}

// Compensate is that of each claim.
func (c *takeAll) Compensate(server *conn.Server) {
	for i := range c.claims {
		c.claims[i].Compensate(server)
	}
}

// oneIsTaken is the reply of take_all when it did nothing because one of the locks is taken.
const oneIsTaken = "0"

// didNothing says that a command of several locks took, or freed, none, perhaps because of one of them: the others can be
// done one by one. Of earlier copies of the command it says nothing.
func didNothing(r conn.Reply, err error) bool {
	if err == nil {
		return r.Value == nil || r.Value == oneIsTaken
	}
	return conn.Failed(err).Outcome == conn.Refused && !conn.IsClosed(err) && !conn.IsTransient(err) // what is transient refuses all
}

// ReleaseAll is Release for several holds at once. It returns their results, in their order, when all are answered.
func (s *Store) ReleaseAll(ctx context.Context, rs []*Release, timeout time.Duration) []Result[Released] {
	if s.IsQuorum() {
		return atOnce(s, len(rs), func(i int) (Released, error) { return s.Release(ctx, *rs[i], timeout) })
	}
	end, together, results := time.Now().Add(timeout), s.freeAllCommand(rs), make([]Result[Released], len(rs))
	if together != nil {
		if r, err := s.servers[0].Do(ctx, together, timeout); !didNothing(r, err) {
			decodeReleases(results, r, err)
			return results
		}
	}
	room, commands := make([]releaseCommand, len(rs)), make([]*conn.Command, len(rs))
	for i, r := range rs {
		if commands[i] = r.command(s, &room[i], false); together != nil {
			commands[i].MergedArgs = 0 // the merged script has just declined it
		}
	}
	s.servers[0].DoAll(ctx, commands, time.Until(end), func(i int, r conn.Reply, err error) {
		one := &results[i]
		one.Answer, one.Err = decoded(s.servers[0], commands[i], r, err, decodeRelease)
		one.Answer.Found = one.Answer.Found || commands[i].Resends.MayArriveTwice()
	})
	return results
}

// freeAllCommand is one command for several releases; nil: no command can do what they ask for.
func (s *Store) freeAllCommand(rs []*Release) *conn.Command {
	n, first := len(rs), rs[0]
	if n < 2 || !s.servers[0].Merges() {
		return nil
	}
	c := new(releaseCommand)
	c.Script, c.Keys, c.Words = s.scripts.release.Merged, int16(n), make([]any, n, n+2)
	c.Tag, c.MergedArgs, c.Urgent = first.Owner, 2, true
	for i, r := range rs {
		if !r.isSimple() || r.Owner != first.Owner || r.Token != first.Token || r.Terms != first.Terms {
			return nil
		}
		c.Words[i] = r.Name.Lock()
	}
	c.Words = append(c.Words, first.Owner, simpleMode(c.mode[:0], first.Token, first.Lease))
	return &c.Command
}

// decodeReleases reads the reply of free_all to several releases: a text with a part for each.
func decodeReleases(results []Result[Released], r conn.Reply, err error) {
	rest, _ := r.Value.(string)
	if err == nil && strings.Count(rest, ",") != len(results)-1 {
		err = unexpected(r.Value)
	}
	for i := range results {
		if results[i].Err = err; err == nil {
			r.Value, rest, _ = strings.Cut(rest, ",")
			results[i].Answer, results[i].Err = decodeRelease(r)
		}
	}
}
