package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// State is a lock at one moment.
type State struct {
	Held  bool   // or in its dedup window
	Owner string // empty in a dedup window
	Holds int
	TTL   time.Duration // negative: it has no end
}

// Inspect reads the state of a lock; of a quorum, the majority's view. It blocks for
// Timeout at most, and returns early when ctx ends; the error is a [*conn.Failure].
func (s *Store) Inspect(ctx context.Context, n Name) (State, error) {
	c := &conn.Command{Script: s.scripts.inspect, Keys: 1, Words: []any{n.lock}, Resends: new(conn.Resends)}
	state, _, err := ask(ctx, s, c, decodeState, decideInspect)
	return state, err
}

func decodeState(reply any) (State, error) {
	r := read(reply)
	ttl, fields := r.number(0), reader{values: value[[]any](&r, 1)}
	state := State{Held: ttl != -2, TTL: time.Duration(ttl) * time.Millisecond}
	for i := 0; i < len(fields.values); i += 2 {
		if field := fields.text(i); !IsOwnField(field) {
			state.Owner = field
			state.Holds, _ = strconv.Atoi(fields.text(i + 1))
		}
	}
	if r.err == nil {
		r.err = fields.err
	}
	if !state.Held {
		state = State{}
	}
	return state, r.err
}

// decideInspect: the owner that a majority names, with the shortest ttl and the
// most holds among them; otherwise nobody.
func decideInspect(t *tally[State]) (state State, decided bool, err error) {
	all := t.all()
	most := 0
	for _, a := range all {
		same := t.answers(func(b State) bool { return b.Held && b.Owner == a.Owner })
		most = max(most, len(same))
		if a.Held && len(same) >= t.majority {
			state = slices.MinFunc(same, func(a, b State) int { return cmp.Compare(a.TTL, b.TTL) })
			// Of two majorities one member is in both: it has the latest re-entry.
			for _, b := range same {
				state.Holds = max(state.Holds, b.Holds)
			}
			return state, true, nil
		}
	}
	switch {
	case t.pending() > 0:
		return state, false, nil
	case len(all) < t.majority, most+t.total-len(all) >= t.majority:
		return state, true, t.noMajority()
	default:
		return state, true, nil
	}
}
