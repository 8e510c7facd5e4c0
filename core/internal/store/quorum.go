package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Quorum is several independent Redis: what a majority says of a lock counts. Its methods are those of a [Store], and it
// cannot hand a lock over.
type Quorum struct {
	backend
	usual atomic.Int64 // how long the slower members take to vote, in ns
}

// NewQuorum returns a Quorum of an odd number of servers. It does no network I/O and starts no goroutine.
func NewQuorum(servers []*conn.Server, c Config) *Quorum {
	return &Quorum{backend: newBackend(servers, c)}
}

// HasQueue says no: a grant by one member means nothing.
func (*Quorum) HasQueue() bool { return false }

// HandOffNeedsRedis says yes: clocks of members differ, so another majority might give a smaller token than the process has.
func (*Quorum) HandOffNeedsRedis() bool { return true }

// MinorityMayKeep says yes: members differ, and one that is dead confirms nothing.
func (*Quorum) MinorityMayKeep() bool { return true }

// Margin is also for clocks that run at different speeds, as Redlock has it.
func (*Quorum) Margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// Acquire is that of a [Store], and blocks for some times Timeout at most.
func (s *Quorum) Acquire(ctx context.Context, c *Claim) (Grant, error) {
	c.prepare(&s.backend)
	return s.elect(ctx, c)
}

// AcquireAll is that of a [Store]: each lock is asked for by itself.
func (s *Quorum) AcquireAll(ctx context.Context, cs []Claim, _ bool) []Result[Grant] {
	return atOnce(s, len(cs), func(i int) (Grant, error) { return s.Acquire(ctx, &cs[i]) })
}

// ReleaseAll is that of a [Store].
func (s *Quorum) ReleaseAll(ctx context.Context, rs []*Release, timeout time.Duration) []Result[Released] {
	return atOnce(s, len(rs), func(i int) (Released, error) { return s.Release(ctx, *rs[i], timeout) })
}

// atOnce asks the members of a quorum about each apart from the others.
func atOnce[A any](s *Quorum, n int, ask func(i int) (A, error)) []Result[A] {
	results := make([]Result[A], n)
	var all sync.WaitGroup
	all.Add(n)
	for i := range n {
		s.config.Workers.Start(func() {
			defer all.Done()
			results[i].Answer, results[i].Err = ask(i)
		})
	}
	all.Wait()
	return results
}
