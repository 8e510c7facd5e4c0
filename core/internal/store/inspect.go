package store

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// State is a lock at one moment.
type State struct {
	Held     bool          // or parked, answered, unknown, or in its dedup window
	Owner    string        // empty when nobody has it, or several
	Holds    int           // of all holders
	TTL      time.Duration // negative: it has no end
	Form     Form
	Parked   bool     // handed over, and not resumed
	Answered bool     // it has the answer to a request that counts once
	Unknown  bool     // what the last attempt at such a request has done
	Holders  []Holder // of a lock that several may hold, by their owners
}

// Holder is one of several.
type Holder struct {
	Owner string
	Holds int
	TTL   time.Duration
}

// Inspect reads the state of a lock; of a quorum, the majority's view. It blocks for
// Timeout at most, and returns early when ctx ends; the error is a [*conn.Failure].
func (s *Store) Inspect(ctx context.Context, n Name) (State, error) {
	c := &conn.Command{Script: s.scripts.inspect, Keys: 1, Words: []any{n.Lock()}, Resends: new(conn.Resends)}
	state, _, err := ask(ctx, s, c, decodeState, decideInspect)
	return state, err
}

// sharedMode is the mode of a lock that several can have, see lock.lua.
var sharedMode = regexp.MustCompile(`^[sp][0-9]*$`)

func decodeState(value any) (State, error) {
	r, err := parse(value)
	if err == nil && (r.status != saidState || len(r.fields)%2 != 0) {
		err = unexpected(value)
	}
	if err != nil {
		return State{}, err
	}
	state := State{Held: r.ttl != -2*time.Millisecond, TTL: r.ttl}
	for i := 0; i < len(r.fields); i += 2 {
		field, _ := r.fields[i].(string)
		text, _ := r.fields[i+1].(string)
		if owner, ok := strings.CutPrefix(field, holderField); ok {
			if h, ok := readHolder(owner, text, r.time); ok {
				state.Holders = append(state.Holders, h)
			}
			continue
		}
		switch {
		case field == modeField && sharedMode.MatchString(text):
			state.Form = Form(text[:1])
		case field == modeField:
			state.Parked = strings.HasPrefix(text, "h")
			state.Unknown = strings.HasPrefix(text, "i")
		case field == answerField:
			state.Answered = true
		case !IsOwnField(field):
			state.Owner = field
			state.Holds, _ = strconv.Atoi(text)
		}
	}
	slices.SortFunc(state.Holders, func(a, b Holder) int { return cmp.Compare(a.Owner, b.Owner) })
	for _, h := range state.Holders {
		state.Holds += h.Holds
	}
	if len(state.Holders) == 1 {
		state.Owner = state.Holders[0].Owner
	}
	state.Parked = state.Parked && state.Holders == nil
	state.Unknown = state.Unknown && state.Holders == nil
	state.Held = state.Held && (state.Form == Exclusive || state.Holders != nil)
	if !state.Held {
		state = State{}
	}
	return state, nil
}

// readHolder reads what a holder has, see lock.lua. One that has ended is none.
func readHolder(owner, text string, now time.Duration) (h Holder, ok bool) {
	words := strings.Fields(text)
	if len(words) < 4 {
		return h, false
	}
	ends, _ := strconv.ParseInt(words[0], 10, 64)
	h = Holder{Owner: owner, Holds: len(words) - 3, TTL: time.Duration(ends)*time.Microsecond - now}
	if len(words[3]) == 1 {
		h.Holds-- // it stands for the outcome of the first
	}
	return h, h.TTL > 0
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
