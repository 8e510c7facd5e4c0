package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// atOnce asks the members of a quorum about each apart from the others.
func atOnce[A any](s *Store, n int, ask func(i int) (A, error)) []Result[A] {
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

// vote is what a member of a quorum has answered.
type vote[T any] struct {
	member int
	answer T
	err    error // a [*conn.Failure]: nobody knows the answer
}

// ballot has the votes that have arrived.
type ballot[T any] struct {
	members int
	votes   []vote[T]
}

func (b *ballot[T]) majority() int { return b.members/2 + 1 }
func (b *ballot[T]) pending() int  { return b.members - len(b.votes) }

// answers returns those for which which is true.
func (b *ballot[T]) answers(which func(T) bool) []T {
	var answers []T
	for _, v := range b.votes {
		if v.err == nil && which(v.answer) {
			answers = append(answers, v.answer)
		}
	}
	return answers
}

// agreed returns the answers of a majority that are the same. When there is no such majority, and there cannot be one
// any more, that is decided as well. Without a majority it returns the zero answer.
func (b *ballot[T]) agreed(same func(a, b T) bool) (answers []T, decided bool, err error) {
	for _, v := range b.votes {
		answers = b.answers(func(a T) bool { return same(a, v.answer) })
		if len(answers) >= b.majority() {
			return answers, true, nil
		}
	}
	if b.pending() > 0 {
		return make([]T, 1), false, nil
	}
	return make([]T, 1), true, b.noMajority()
}

// failures are why members did not answer.
func (b *ballot[T]) failures() (errs []error) {
	for _, v := range b.votes {
		if isFailure(v.err) {
			errs = append(errs, v.err)
		}
	}
	return errs
}

// noMajority is the outcome when too few members can be reached, or all differ.
func (b *ballot[T]) noMajority() error {
	failures := b.failures()
	if len(failures) == 0 {
		return conn.Failed(errors.New("the members do not agree"))
	}
	return conn.Failed(fmt.Errorf("%d of %d members failed: %w", len(failures), b.members, errors.Join(failures...)))
}

// decideYes is what a majority says.
func decideYes(b *ballot[bool]) (yes, decided bool, err error) {
	answers, decided, err := b.agreed(func(a, b bool) bool { return a == b })
	return answers[0], decided, err
}

// question is one command for the one server, or for all members of a quorum.
type question[T any] struct {
	command *conn.Command
	timeout time.Duration
	decode  func(conn.Reply) (T, error)
	decide  func(*ballot[T]) (answer T, decided bool, err error)
	missed  func(*conn.Server) // a member has failed, and the others have decided; nil: that does no harm
}

// ask returns as soon as the answers decide it.
func (q question[T]) ask(ctx context.Context, s *Store) (T, error) {
	if !s.IsQuorum() {
		return do(ctx, s.servers[0], q.command, q.timeout, q.decode)
	}
	arrived, done := make(chan vote[T], len(s.servers)), newDecision[bool]()
	for i := range s.servers {
		s.config.Workers.Start(func() {
			answer, err := do(ctx, s.servers[i], q.command, q.timeout, q.decode)
			arrived <- vote[T]{i, answer, err}
			if err != nil && q.missed != nil && done.wait() {
				q.missed(s.servers[i])
			}
		})
	}
	b := &ballot[T]{members: len(s.servers)}
	for {
		b.votes = append(b.votes, <-arrived)
		if answer, decided, err := q.decide(b); decided {
			done.make(err == nil)
			return answer, err
		}
	}
}

// decision is a value for which others wait until it is decided.
type decision[T any] struct {
	made  chan struct{}
	value T
}

func newDecision[T any]() *decision[T] { return &decision[T]{made: make(chan struct{})} }
func (d *decision[T]) make(value T) {
	d.value = value
	close(d.made)
}

func (d *decision[T]) wait() T {
	<-d.made
	return d.value
}
