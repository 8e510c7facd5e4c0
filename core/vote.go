package core

import (
	"errors"
	"fmt"
	"slices"
)

// vote is the answer of one member of a quorum.
type vote struct {
	member int
	node   *node
	values []any
	err    error
}

// tally is what the members have answered so far.
type tally struct {
	total, majority int
	votes           []vote
	impatient       bool   // those that have not answered are not worth waiting for
	failed          []vote // of members that have voted, and could not be reached since
}

func (q *quorum) tally() *tally { return &tally{total: len(q.nodes), majority: q.majority} }

func (t *tally) pending() int { return t.total - len(t.votes) }

// with returns the replies for which f is true.
func (t *tally) with(f func(values []any) bool) [][]any {
	var replies [][]any
	for _, v := range t.votes {
		if v.err == nil && f(v.values) {
			replies = append(replies, v.values)
		}
	}
	return replies
}

// contended says that one member at least refused a lock because somebody else has it.
func (t *tally) contended() bool { return len(t.with(status(2))) > 0 }

// forgetRefusals takes the votes of those out that refused, and returns who they are.
func (t *tally) forgetRefusals() []int {
	var members []int
	t.votes = slices.DeleteFunc(t.votes, func(v vote) bool {
		refused := v.err == nil && number(v.values[0]) == 2
		if refused {
			members = append(members, v.member)
		}
		return refused
	})
	return members
}

func (t *tally) all() [][]any { return t.with(func([]any) bool { return true }) }

// noMajority is the outcome when too few members can be reached.
func (t *tally) noMajority() error {
	errs := make([]error, 0, len(t.votes))
	for _, v := range t.votes {
		if v.err != nil {
			errs = append(errs, v.err)
		}
	}
	if len(errs) == 0 {
		return errors.New("the members do not agree")
	}
	return fmt.Errorf("%d of %d members failed: %w", len(errs), t.total, errors.Join(errs...))
}

func status(n int64) func([]any) bool {
	return func(values []any) bool { return number(values[0]) == n }
}

func isGrant(values []any) bool { return len(values) > 0 && number(values[0]) == 1 }

// withoutToken is the outcome of an acquisition that was granted but whose token reached
// no majority: to be tried again while a majority answers.
func (t *tally) withoutToken() ([]any, error) {
	if len(t.all())-len(t.failed) >= t.majority {
		return []any{int64(2), int64(-1), int64(0), int64(1)}, nil
	}
	all := &tally{total: t.total, votes: slices.Concat(t.votes, t.failed)}
	return nil, fmt.Errorf("the fencing token reached no majority: %w", all.noMajority())
}

// decideAcquire: held when a majority grants it, with the greatest token and the
// shortest ttl. When it is impatient, and contenders stand in the way, it is busy as
// soon as a majority has answered.
func decideAcquire(t *tally) (values []any, err error, decided bool) {
	grants := t.with(isGrant)
	if len(grants) >= t.majority {
		best := slices.Clone(grants[0])
		ttl := number(best[3])
		for _, g := range grants[1:] {
			ttl = min(ttl, number(g[3]))
			if better(g, best) {
				best = slices.Clone(g)
			}
		}
		best[3] = ttl
		return best, nil, true
	}
	answers := t.all()
	if t.impatient && t.contended() && len(answers) >= t.majority {
		return t.busy(t.with(status(2)), t.majority-len(grants)), nil, true
	}
	if len(grants)+t.pending() >= t.majority {
		return nil, nil, false
	}
	if len(answers) < t.majority {
		if len(answers)+t.pending() >= t.majority {
			return nil, nil, false // held or unreachable, that is not the same
		}
		return nil, t.noMajority(), true
	}
	if others := t.with(status(2)); len(others) > 0 {
		return t.busy(others, t.majority-len(grants)), nil, true
	}
	if gone := t.with(status(3)); len(gone) > t.total-t.majority {
		return gone[0], nil, true
	}
	return nil, t.noMajority(), true
}

// better prefers a re-entry, whose lock is older than what other members have just
// granted, then the greater token.
func better(a, b []any) bool {
	if x, y := number(a[4]), number(b[4]); x != y {
		return x < y
	}
	x, y := text(a[1]), text(b[1])
	return len(x) > len(y) || len(x) == len(y) && x > y
}

// busy says when enough of the members that refused will be free. It is split
// when some granted: then nobody may hold a majority.
func (t *tally) busy(refusals [][]any, needed int) []any {
	slices.SortFunc(refusals, func(a, b []any) int {
		x, y := number(a[1]), number(b[1])
		switch {
		case x == y:
			return 0
		case x >= 0 && (y < 0 || x < y): // without an end is last
			return -1
		default:
			return 1
		}
	})
	last := refusals[min(needed, len(refusals))-1]
	split := int64(0)
	if needed < t.majority {
		split = 1
	}
	return []any{int64(2), last[1], last[2], split}
}

// decideYes: 1 when a majority says so, 0 when no majority can say so any more.
func decideYes(t *tally) (values []any, err error, decided bool) {
	yes, no := t.with(isGrant), t.with(status(0))
	switch {
	case len(yes) >= t.majority:
		return yes[0], nil, true
	case len(no) > t.total-t.majority:
		return no[0], nil, true
	case t.pending() > 0:
		return nil, nil, false
	default:
		return nil, t.noMajority(), true
	}
}

// decideRelease: ended when a majority has ended it.
func decideRelease(t *tally) (values []any, err error, decided bool) {
	ended := t.with(func(values []any) bool { return number(values[0]) != 0 })
	none := t.with(status(0))
	switch {
	case len(ended) >= t.majority:
		return ended[0], nil, true
	case len(none) > t.total-t.majority:
		return none[0], nil, true
	case t.pending() > 0:
		return nil, nil, false
	default:
		return nil, t.noMajority(), true
	}
}

// decideForce: done when a majority has answered; freed if one of them was.
func decideForce(t *tally) (values []any, err error, decided bool) {
	answers := t.all()
	switch {
	case len(answers) >= t.majority:
		if freed := t.with(isGrant); len(freed) > 0 {
			return freed[0], nil, true
		}
		return answers[0], nil, true
	case t.pending() > 0:
		return nil, nil, false
	default:
		return nil, t.noMajority(), true
	}
}

// decideInspect: the owner that a majority names, with the shortest ttl and the
// most holds among them; otherwise nobody.
func decideInspect(t *tally) (values []any, err error, decided bool) {
	answers := t.all()
	most := 0
	for _, a := range answers {
		owner, _ := ownerOf(a)
		same := t.with(func(values []any) bool {
			other, _ := ownerOf(values)
			return number(values[0]) != -2 && other == owner
		})
		most = max(most, len(same))
		if number(a[0]) == -2 || len(same) < t.majority {
			continue
		}
		shortest := slices.MinFunc(same, func(a, b []any) int { return int(number(a[0]) - number(b[0])) })
		// Of two majorities one member is in both: it has the latest re-entry.
		deepest := slices.MaxFunc(same, func(a, b []any) int {
			_, m := ownerOf(a)
			_, n := ownerOf(b)
			return m - n
		})
		return []any{shortest[0], deepest[1]}, nil, true
	}
	switch {
	case t.pending() > 0:
		return nil, nil, false
	case len(answers) < t.majority, most+t.total-len(answers) >= t.majority && most > 0:
		return nil, t.noMajority(), true
	default:
		return []any{int64(-2), []any{}}, nil, true
	}
}
