package store

import (
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// vote is what came of a command at one member of a quorum.
type vote[T any] struct {
	member int
	answer T
	err    error // nobody knows the answer
}

// tally is what the members have answered so far.
type tally[T any] struct {
	total, majority int
	votes           []vote[T]
}

func (t *tally[T]) pending() int { return t.total - len(t.votes) }

// answers returns those for which which is true.
func (t *tally[T]) answers(which func(T) bool) []T {
	var answers []T
	for _, v := range t.votes {
		if v.err == nil && which(v.answer) {
			answers = append(answers, v.answer)
		}
	}
	return answers
}

func (t *tally[T]) all() []T { return t.answers(func(T) bool { return true }) }

// noMajority is the outcome when too few members can be reached; more have failed since
// they have voted.
func (t *tally[T]) noMajority(more ...error) error {
	errs := make([]error, 0, t.total)
	for _, v := range t.votes {
		if v.err != nil {
			errs = append(errs, v.err)
		}
	}
	errs = append(errs, more...)
	if len(errs) == 0 {
		return conn.Failed(errors.New("the members do not agree"))
	}
	return conn.Failed(fmt.Errorf("%d of %d members failed: %w", len(errs), t.total, errors.Join(errs...)))
}

// decideBy decides between two kinds of answers: the first that is yes when a majority
// says so, the first that is not when no majority can say yes any more.
func decideBy[T any](t *tally[T], yes func(T) bool) (answer T, decided bool, err error) {
	ayes := t.answers(yes)
	noes := t.answers(func(a T) bool { return !yes(a) })
	switch {
	case len(ayes) >= t.majority:
		return ayes[0], true, nil
	case len(noes) > t.total-t.majority:
		return noes[0], true, nil
	case t.pending() > 0:
		return answer, false, nil
	default:
		return answer, true, t.noMajority()
	}
}

// decideYes is true when a majority says so, false when none can any more.
func decideYes(t *tally[bool]) (answer, decided bool, err error) {
	return decideBy(t, func(yes bool) bool { return yes })
}
