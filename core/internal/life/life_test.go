package life

import (
	"fmt"
	"strings"
	"testing"
)

var names = [...]string{
	"none", "held", "parked", "perhaps free", "leaving", "released", "handed off", "handed over",
	"expired", "fixed over", "held too long", "parked too long", "expired in redis", "deleted", "closed",
}

// lease is one with two handles.
type lease struct {
	Life
	first, inner HandleState
}

// usual are the times of the leases here. They are overdue at 150, too.
var usual = Times{Ends: 200, RenewAt: 130}

func begun(t Times) *lease {
	s := &lease{}
	s.Life = New(&s.first, t, 150)
	return s
}

// handle is the one that leaves next.
func (s *lease) handle() *HandleState {
	if s.inner == Out {
		return &s.first
	}
	return &s.inner
}

// sure is for events that are always done.
func sure(e Effects) (bool, Effects) { return true, e }

// plain is for those that have no effects, too.
func plain(event func(s *lease)) func(s *lease) (bool, Effects) {
	return func(s *lease) (bool, Effects) {
		event(s)
		return true, Effects{}
	}
}

// events are what can happen to a lease.
var events = map[string]func(s *lease) (done bool, e Effects){
	"check":                 func(s *lease) (bool, Effects) { return sure(s.Check(110)) },
	"check at 160":          func(s *lease) (bool, Effects) { return sure(s.Check(160)) },
	"check at its end":      func(s *lease) (bool, Effects) { return sure(s.Check(200)) },
	"check at 230":          func(s *lease) (bool, Effects) { return sure(s.Check(230)) },
	"due at 129":            func(s *lease) (bool, Effects) { return sure(s.Due(129)) },
	"due at 130":            func(s *lease) (bool, Effects) { return sure(s.Due(130)) },
	"due at 149":            func(s *lease) (bool, Effects) { return sure(s.Due(149)) },
	"due at 150":            func(s *lease) (bool, Effects) { return sure(s.Due(150)) },
	"due at 155":            func(s *lease) (bool, Effects) { return sure(s.Due(155)) },
	"due at its end":        func(s *lease) (bool, Effects) { return sure(s.Due(200)) },
	"renewal answered":      plain(func(s *lease) { s.RenewalAnswered() }),
	"renewed":               plain(func(s *lease) { s.Renewed(Times{Ends: 230, RenewAt: 140}) }),
	"renewed, an old one":   plain(func(s *lease) { s.Renewed(Times{Ends: 190, RenewAt: 120}) }),
	"not renewed":           plain(func(s *lease) { s.NotRenewed(135) }),
	"not renewed, late":     plain(func(s *lease) { s.NotRenewed(155) }),
	"not found":             func(s *lease) (bool, Effects) { return sure(s.LeaseNotFound(110)) },
	"not found at its end":  func(s *lease) (bool, Effects) { return sure(s.LeaseNotFound(200)) },
	"release finds nothing": func(s *lease) (bool, Effects) { return sure(s.HoldNotFound(110)) },
	"… at its end":          func(s *lease) (bool, Effects) { return sure(s.HoldNotFound(200)) },
	"close":                 func(s *lease) (bool, Effects) { return sure(s.Close()) },
	"join":                  func(s *lease) (bool, Effects) { return s.Join(110, &s.inner) },
	"join at its end":       func(s *lease) (bool, Effects) { return s.Join(200, &s.inner) },
	"join of another":       func(s *lease) (bool, Effects) { return s.Join(110, nil) },
	"entered":               func(s *lease) (bool, Effects) { return sure(s.Entered(120, &s.inner, Times{Ends: 230, RenewAt: 140})) },
	"entered at 230":        func(s *lease) (bool, Effects) { return sure(s.Entered(230, &s.inner, Times{Ends: 230, RenewAt: 140})) },
	"first leaves":          func(s *lease) (bool, Effects) { return s.Leave(110, &s.first) },
	"leave":                 func(s *lease) (bool, Effects) { return s.Leave(110, s.handle()) },
	"leave at its end":      func(s *lease) (bool, Effects) { return s.Leave(200, s.handle()) },
	"left":                  func(s *lease) (bool, Effects) { return sure(s.Left()) },
	"hand off":              func(s *lease) (bool, Effects) { return sure(s.HandOffInMemory()) },
	"may be handed off":     func(s *lease) (bool, Effects) { return s.MayBeHandedOffInMemory(199), Effects{} },
	"… at the end":          func(s *lease) (bool, Effects) { return s.MayBeHandedOffInMemory(200), Effects{} },
	"park":                  func(s *lease) (bool, Effects) { return s.BeginHandover(110, &s.first, 145) },
	"park for long":         func(s *lease) (bool, Effects) { return s.BeginHandover(110, &s.first, 300) },
	"park at its end":       func(s *lease) (bool, Effects) { return s.BeginHandover(200, &s.first, 300) },
	"park until 160":        plain(func(s *lease) { s.HandoverEndsBy(160) }),
	"park until 300":        plain(func(s *lease) { s.HandoverEndsBy(300) }),
	"was parked at 115":     func(s *lease) (bool, Effects) { return s.WasBeingHandedOver(115), Effects{} },
	"was parked at 116":     func(s *lease) (bool, Effects) { return s.WasBeingHandedOver(116), Effects{} },
	"unpark":                func(s *lease) (bool, Effects) { return s.CancelHandover(115, &s.first), Effects{} },
	"hand over":             func(s *lease) (bool, Effects) { return sure(s.HandOverByTicket(&s.first)) },
}

// happens has an event happen, and says what it entails and where the lease stands then.
func (s *lease) happens(t *testing.T, event string) string {
	t.Helper()
	if events[event] == nil {
		t.Fatalf("there is no event %q", event)
	}
	before, due := s.state, s.NextDue()
	done, e := events[event](s)
	if (e.Ended != 0) != (s.state.IsEnd() && s.state != before) || e.Ended != 0 && (e.Ended != s.state || s.NextDue() != 0) {
		t.Errorf("%s, %s: %s with %+v", names[before], event, names[s.state], e)
	}
	said := ""
	if !done {
		said += "no, "
	}
	if e.Renew {
		said += "renew, "
	}
	if e.Overdue {
		said += "overdue, "
	}
	if e.NoHoldLeft {
		said += "no hold left, "
	}
	switch next := s.NextDue(); {
	case next == due || e.Ended != 0:
	case next == 0:
		said += "never, "
	default:
		said += fmt.Sprintf("at %d, ", next)
	}
	return said + names[s.state]
}

// history is a lease to which that has happened.
func history(t *testing.T, s *lease, events ...string) *lease {
	t.Helper()
	for _, event := range events {
		s.happens(t, event)
	}
	return s
}

// What each event entails in each state, and when it is looked at next, if that is another time than before.
func TestEvents(t *testing.T) {
	states := [...][]string{{}, {"park for long"}, {"join", "first leaves"}, {"leave"}}
	for _, row := range strings.Split(strings.TrimSpace(`
		check                 | held              | parked                  | perhaps free        | leaving
		check at its end      | expired           | parked too long         | perhaps free        | leaving
		due at 129            | held              | parked                  | perhaps free        | leaving
		due at 130            | renew, at 150, held | parked                | perhaps free        | leaving
		due at 150            | overdue, at 200, held | overdue, at 200, parked | perhaps free    | leaving
		due at its end        | expired           | parked too long         | perhaps free        | leaving
		renewal answered      | held              | parked                  | perhaps free        | leaving
		renewed               | at 140, held      | parked                  | perhaps free        | leaving
		not renewed           | at 135, held      | parked                  | perhaps free        | leaving
		not found             | no hold left, deleted     | no hold left, deleted           | perhaps free        | leaving
		not found at its end  | no hold left, expired in redis | no hold left, expired in redis | perhaps free        | leaving
		release finds nothing | deleted           | deleted                 | deleted             | deleted
		… at its end          | expired in redis  | expired in redis        | expired in redis    | expired in redis
		close                 | closed            | closed                  | closed              | leaving
		join                  | held              | no, parked              | no, perhaps free    | no, leaving
		join at its end       | no, expired       | no, parked too long     | no, perhaps free    | no, leaving
		join of another       | held              | no, parked              | no, perhaps free    | no, leaving
		leave                 | never, leaving    | no, parked              | leaving             | no, leaving
		leave at its end      | expired           | no, parked too long     | leaving             | no, leaving
		hand off              | held              | parked                  | perhaps free        | handed off
		may be handed off     | no, held          | no, parked              | no, perhaps free    | leaving
		… at the end          | no, held          | no, parked              | no, perhaps free    | no, leaving
		park                  | at 145, parked    | no, parked              | no, perhaps free    | no, leaving
		park for long         | at 150, parked    | no, parked              | no, perhaps free    | no, leaving
		park at its end       | no, expired       | no, parked too long     | no, perhaps free    | no, leaving
	`), "\n") {
		cells := strings.Split(row, "|")
		for i, want := range cells[1:] {
			s := history(t, begun(usual), states[i]...)
			from, event := names[s.state], strings.TrimSpace(cells[0])
			if said := s.happens(t, event); said != strings.TrimSpace(want) {
				t.Errorf("%s, %s: %s; want %s", from, event, said, want)
			}
		}
	}
}

// Whatever comes after the end changes nothing, and has no effects.
func TestEnds(t *testing.T) {
	for end, past := range map[State][]string{
		Released:           {"leave", "left"},
		HandedOffInMemory:  {"leave", "hand off"},
		HandedOverByTicket: {"park", "hand over"},
		Expired:            {"check at its end"},
		HeldTooLong:        {"due at 150", "check at its end"},
		HandoverTooLong:    {"park", "check at 160"},
		ExpiredInRedis:     {"not found at its end"},
		Deleted:            {"not found"},
		Closed:             {"close"},
	} {
		for event := range events {
			s := history(t, begun(usual), past...)
			if s.state != end {
				t.Fatalf("%q: %s", past, names[s.state])
			}
			if said := strings.TrimPrefix(s.happens(t, event), "no, "); said != names[end] {
				t.Errorf("%s, %s: %s", names[end], event, said)
			}
		}
	}
}

// What core asks of a state.
func TestStates(t *testing.T) {
	for state, want := range map[State]string{
		0: "", Held: "held, has handles", BeingHandedOver: "held, has handles", PerhapsFree: "has handles", Leaving: "",
		Released: "ended", HandedOffInMemory: "ended", HandedOverByTicket: "ended",
		Expired: "ended, lost", FixedOver: "ended, lost", HeldTooLong: "ended, lost",
		HandoverTooLong: "ended, lost", ExpiredInRedis: "ended, lost", Deleted: "ended, lost", Closed: "ended, lost",
	} {
		var is []string
		for _, q := range []struct {
			word string
			says bool
		}{{"held", state.IsReliedOn()}, {"has handles", state.HasHandles()}, {"ended", state.IsEnd()}, {"lost", state.IsLost()}} {
			if q.says {
				is = append(is, q.word)
			}
		}
		if said := strings.Join(is, ", "); said != want {
			t.Errorf("%s: %s; want %s", names[state], said, want)
		}
	}
}
