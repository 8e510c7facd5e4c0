package store

import (
	"cmp"
	"context"
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
	Answered bool     // it has the answer to an idempotent request
	Unknown  bool     // what the last attempt at such a request has done
	Holders  []Holder // of a lock that several may hold, by their owners
}

// Holder is one of several.
type Holder struct {
	Owner  string
	Holds  int
	Weight int // of its permits; 0: the form has none
	TTL    time.Duration
}

// Inspect reads the state of a lock; of a quorum, the majority's view. It blocks for Timeout at most, and returns early
// when ctx ends; the error is a [*conn.Failure].
func (s *backend) Inspect(ctx context.Context, n Name) (State, error) {
	c := &conn.Command{Script: s.scripts.inspect, Keys: 1, Words: []any{n.Lock()}, Resends: new(conn.Resends)}
	return question[State]{c, s.config.Timeout, decodeState, decideInspect, nil}.ask(ctx, s)
}

func decodeState(from conn.Reply) (state State, _ error) {
	r := reply{value: from.Value}
	said, ttl, now, fields := r.status(), r.ttl(), r.time(), r.fields()
	if said != saidState || len(fields)%2 != 0 {
		r.foreign()
	}
	if r.err != nil || ttl == -2*time.Millisecond {
		return State{}, r.err
	}
	state = State{Held: true, TTL: ttl}
	kind := byte('x')           // of the mode, see lock.lua
	further := map[string]int{} // permits, beside the first
	for i := 0; i < len(fields); i += 2 {
		field, _ := fields[i].(string)
		text, _ := fields[i+1].(string)
		owner, isHolder := strings.CutPrefix(field, holderField)
		switch {
		case isHolder:
			if h, ok := readHolder(owner, text, now); ok {
				state.Holders = append(state.Holders, h)
				state.Holds += h.Holds
			}
		case strings.HasPrefix(field, weightField):
			_, owner, _ = strings.Cut(strings.TrimPrefix(field, weightField), ":")
			further[owner]++
		case field == modeField && text != "":
			kind = text[0]
		case field == answerField:
			state.Answered = true
		case !IsOwnField(field):
			state.Owner = field
			state.Holds, _ = strconv.Atoi(text)
		}
	}
	for i := range state.Holders {
		if h := &state.Holders[i]; kind == 'p' {
			h.Weight = 1 + further[h.Owner]
		}
	}
	slices.SortFunc(state.Holders, func(a, b Holder) int { return cmp.Compare(a.Owner, b.Owner) })
	if len(state.Holders) == 1 {
		state.Owner = state.Holders[0].Owner
	}
	idle := state.Holders == nil
	state.Parked, state.Unknown = idle && kind == 'h', idle && kind == 'i'
	if kind == 's' || kind == 'p' {
		if idle {
			return State{}, nil
		}
		state.Form = Form{kind: kind}
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

// decideInspect: what a majority says of the owner, with the shortest ttl and the most holds among them; nobody has the
// lock when all have answered and differ.
func decideInspect(b *ballot[State]) (state State, decided bool, err error) {
	same, decided, err := b.agreed(func(a, b State) bool { return a.Held == b.Held && a.Owner == b.Owner })
	switch {
	case decided && err == nil:
		state = slices.MinFunc(same, func(a, b State) int { return cmp.Compare(a.TTL, b.TTL) })
		for _, b := range same { // of two majorities one member is in both: it has the latest re-entry
			state.Holds = max(state.Holds, b.Holds)
		}
	case decided && len(b.failures()) == 0:
		err = nil
	}
	return state, decided, err
}

// Force frees a lock or ends its dedup window, and reports whether there was anything to free: of whoever holds it when
// owner is nil, else if that owner does; an empty one stands for a dedup window. It blocks for Timeout at most, and
// returns early when ctx ends; after an error, a [*conn.Failure], it may have been done.
func (s *backend) Force(ctx context.Context, n Name, owner *string) (bool, error) {
	words := []any{n.Lock(), n.clock()}
	if owner != nil {
		if IsOwnField(*owner) {
			return false, nil // a field of ours is no owner
		}
		words = append(words, *owner)
	}
	c := &conn.Command{Script: s.scripts.force, Keys: 2, Words: words}
	return question[bool]{c, s.config.Timeout, yes, decideForce, nil}.ask(ctx, s)
}

// decideForce: done when a majority has answered; freed if one of them was.
func decideForce(b *ballot[bool]) (freed, decided bool, err error) {
	answers, decided, err := b.agreed(func(_, _ bool) bool { return true })
	return slices.Contains(answers, true), decided, err
}
