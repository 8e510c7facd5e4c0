package life

import (
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

var (
	fixed   = Times{Ends: 200}
	granted = Times{Ends: 200, RenewAt: 105, Granted: true}
)

// What follows from what was before, other than the state.
func TestHistories(t *testing.T) {
	for name, h := range map[string]struct {
		times  Times
		events string // each with what comes of it, where that is of interest
	}{
		"one renewal at a time, which Refresh is not": {usual, `
			due at 130: renew, at 150, held
			due at 149: held
			renewed: held
			due at 149: held
			renewal answered
			due at 149: renew, at 150, held`},
		"a renewal that failed is repeated": {usual, `
			due at 130: renew, at 150, held
			renewal answered
			not renewed: at 135, held
			due at 149: renew, at 150, held`},
		"an answer that nobody waits for": {usual, `
			due at 130: renew, at 150, held
			join
			first leaves: never, perhaps free
			renewal answered
			renewed: perhaps free
			entered: at 140, held
			due at 149: renew, at 150, held`},
		"no renewal shortens the lease": {usual, `
			due at 150
			renewed, an old one: held
			check at its end: held too long`},
		"a longer one": {usual, `
			due at 150
			renewed: at 230, held
			check at its end: held
			check at 230: held too long`},
		"overdue once, and not renewed": {usual, `
			due at 149: renew, at 150, held
			renewal answered
			not renewed
			due at 150: overdue, at 200, held
			due at 155: held
			leave: never, leaving
			may be handed off: no, leaving`},
		"granted: renewed although it is overdue": {granted, `
			due at 150: renew, overdue, at 200, held
			renewal answered
			not renewed, late: at 155, held
			due at 155: renew, at 200, held
			renewal answered
			renewed: at 230, held
			due at its end: held`},
		"granted: so it is after a re-entry, and not after it was taken back": {granted, `
			due at 150
			renewal answered
			join
			entered: at 140, held
			renewed: at 230, held`},
		"fixed: nothing renews it": {fixed, `
			due at 149: held
			not renewed: held
			due at 150: overdue, at 200, held
			check at its end: fixed over`},
		"fixed: Refresh does": {fixed, `
			renewed: held
			due at 155: overdue, at 230, held`},
		"fixed: a re-entry does not": {fixed, `
			join
			entered: held
			check at its end: fixed over`},
		"a re-entry": {usual, `
			join
			entered: at 140, held
			leave: held
			leave: never, leaving
			left: leaving
			left: released`},
		"a re-entry that is answered before its outer handle leaves": {usual, `
			join
			entered
			first leaves: held
			check at its end: held
			left: held
			leave: never, leaving
			left: released`},
		"a re-entry that is refused": {usual, `
			join
			leave: held
			left: held
			leave: never, leaving
			left: released`},
		"a re-entry that is refused when all have left": {usual, `
			join
			first leaves: never, perhaps free
			left: perhaps free
			leave: leaving
			left: released`},
		"a re-entry that is confirmed when all have left": {usual, `
			join
			first leaves
			left: perhaps free
			entered: at 140, held
			leave: never, leaving
			left: released`},
		"a re-entry that is confirmed late": {usual, `
			join
			entered at 230: expired
			leave: expired`},
		"a re-entry of a lease that is lost": {usual, `
			join
			not found: no hold left, deleted
			entered: deleted
			leave: deleted
			leave: deleted
			leave: no, deleted`},
		"a lease that is lost while its handle leaves": {usual, `
			leave at its end: expired
			leave: no, expired`},
		"the last answer to a release ends it": {usual, `
			join
			entered
			leave
			leave: never, leaving
			left: leaving
			left: released`},
		"deleted after the next call was chosen": {usual, `
			leave
			release finds nothing: deleted
			hand off: deleted
			left: deleted`},
		"handed off while an inner release is not answered": {usual, `
			join
			entered
			leave
			leave
			hand off: handed off
			left: handed off
			release finds nothing: handed off`},
		"not handed over by one with an inner handle": {usual, `
			join
			park: no, held
			entered
			park: no, held
			leave
			park: at 145, parked`},
		"not handed over by one that has left": {usual, `
			join
			entered
			first leaves
			park: no, held`},
		"parked: what was asked by then says nothing": {usual, `
			was parked at 115: no, held
			park: at 145, parked
			was parked at 115: parked
			unpark: no, at 130, held
			was parked at 115: held
			was parked at 116: no, held`},
		"parked: it is not renewed": {usual, `
			due at 130: renew, at 150, held
			park
			renewal answered
			renewed: parked
			park until 300: at 150, parked
			due at 149: parked
			unpark: no, at 140, held`},
		"parked for less, or more, than its lease": {usual, `
			park
			park until 160: at 150, parked
			due at 150: overdue, at 160, parked
			check at 160: parked too long`},
		"parked for more than its lease": {usual, `
			park
			park until 300
			check at 230: parked
			unpark
			check at 230: expired`},
		"unlocked while it was handed over": {usual, `
			park
			leave: no, parked
			leave: no, parked
			unpark: at 130, held
			leave: never, leaving`},
		"handed over although it was unlocked": {usual, `
			park
			leave: no, parked
			hand over: handed over
			leave: no, handed over`},
		"handed over while an inner release is not answered": {usual, `
			join
			entered
			leave
			park
			left: parked
			hand over: handed over`},
		"handed over before an inner release is answered": {usual, `
			join
			entered
			leave
			park
			hand over: never, leaving
			hand off: handed off`},
		"handed over, and then an inner release is answered": {usual, `
			join
			entered
			leave
			park
			hand over: never, leaving
			left: released`},
		"lost while it was handed over": {usual, `
			park
			not found: no hold left, deleted
			park until 160: deleted
			unpark: no, deleted
			leave: deleted
			leave: no, deleted`},
		"closed while it was handed over": {usual, `
			park
			close: closed
			hand over: closed
			leave: no, closed`},
	} {
		s := begun(h.times)
		for _, line := range strings.Split(strings.TrimSpace(h.events), "\n") {
			event, want, told := strings.Cut(strings.TrimSpace(line), ": ")
			if said := s.happens(t, event); told && said != want {
				t.Errorf("%s: %s: %s; want %s", name, event, said, want)
			}
		}
	}
}

// Core gives the times, and the number of handles, away: to the next call, and to Snapshot.
func TestWhatIsTold(t *testing.T) {
	for at, times := range map[schedule.Time]Times{130: usual, 105: granted, 150: fixed} {
		if s := begun(times); s.NextDue() != at {
			t.Errorf("first looked at, at %d: %+v", at, s)
		}
	}
	s := history(t, begun(granted), "join")
	if s.times != granted || !s.times.Granted || s.OverdueAt() != 150 || s.IsOverdue() || s.Holds() != 2 || s.StopAt() != 200 {
		t.Errorf("%+v", s)
	}
	s = history(t, begun(granted), "renewed", "park for long", "due at 150")
	if want := (Times{Ends: 230, RenewAt: 140}); s.times != want || s.times.Granted || !s.IsOverdue() || s.Holds() != 1 || s.StopAt() != 230 {
		t.Errorf("%+v", s)
	}
	// Nobody relies on it any more. Its release knows whether it was renewed.
	if s := history(t, begun(granted), "leave", "not renewed"); s.times != granted {
		t.Errorf("not renewed: %+v", s)
	}
	if s := history(t, begun(granted), "park", "not found", "renewed"); s.times != (Times{Ends: 200, RenewAt: 105}) {
		t.Errorf("taken back when it was lost: %+v", s)
	}
	s.Life = New(&s.first, usual, 0)
	if said := s.happens(t, "due at 150"); said != "renew, at 200, held" {
		t.Errorf("without MaxHold: %s", said)
	}
}
