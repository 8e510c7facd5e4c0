package conn

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

const testLate = 100 * time.Millisecond

var testStart = time.Unix(1000, 0)

// at returns a window of which so many commands are in flight, sent by one round trip at the start, and that trip.
func windowWith(commands int) (*window, trip) {
	w := newWindow(testLate)
	w.distance = time.Millisecond
	t := w.begin(testStart, commands)
	t.sent = testStart
	return &w, t
}

func (t trip) after(took time.Duration, e ending) trip {
	t.took, t.ending = took, e
	return t
}

func TestWindowFollowsWhatAnswersTake(t *testing.T) {
	for name, c := range map[string]struct {
		inFlight int
		took     time.Duration
		ending   ending
		want     float64
	}{
		"prompt and full":                {64, 20 * time.Millisecond, endedByAnswer, 128},
		"prompt and half full":           {32, 20 * time.Millisecond, endedByAnswer, 96},
		"prompt and not used":            {31, 20 * time.Millisecond, endedByAnswer, 64},
		"less prompt":                    {64, 90 * time.Millisecond, endedByAnswer, 65},
		"late":                           {40, 102 * time.Millisecond, endedByAnswer, 28},
		"late, however much it was":      {1, time.Second, endedByAnswer, 1},
		"lost":                           {40, 400 * time.Millisecond, endedLate, 20},
		"the end of a caller in a hurry": {40, 50 * time.Millisecond, endedLate, 64},
		"a connection that broke":        {40, time.Second, endedOtherwise, 64},
	} {
		w, sent := windowWith(c.inFlight)
		w.end(sent.after(c.took, c.ending))
		if w.limit != c.want || w.inFlight != 0 {
			t.Errorf("%s: the window is %v, want %v; %d are in flight", name, w.limit, c.want, w.inFlight)
		}
	}
}

func TestWindowShrinksOnceInARoundTrip(t *testing.T) {
	w, first := windowWith(40)
	second := w.begin(testStart, 20)
	second.sent = testStart.Add(time.Millisecond)
	w.end(first.after(150*time.Millisecond, endedByAnswer))
	shrunk := w.limit
	w.end(second.after(150*time.Millisecond-time.Millisecond, endedByAnswer))
	if shrunk != 0.7*60 || w.limit != shrunk {
		t.Errorf("it is %v, and then %v", shrunk, w.limit)
	}
}

func TestWindowThatIsNotUsedShrinksToWhatItWas(t *testing.T) {
	w, _ := windowWith(0)
	w.limit = 1000
	for range 100 {
		one := w.begin(testStart, 1)
		one.sent = testStart
		w.end(one.after(time.Millisecond, endedByAnswer))
	}
	if w.limit != windowAtFirst {
		t.Errorf("it is %v", w.limit)
	}
}

// step lets so many commands as there is room for, of 200, be answered after a time.
func step(w *window, now *time.Time, took time.Duration) (together int) {
	together = max(1, min(200, w.room(*now)))
	t := w.begin(*now, together)
	t.sent = *now
	w.end(t.after(took, endedByAnswer))
	*now = now.Add(took)
	return together
}

// After a failover a server may be farther away than what would have been late.
func TestWindowOpensForAServerThatIsFartherAway(t *testing.T) {
	w, now := newWindow(83*time.Millisecond), testStart
	for range 100 {
		step(&w, &now, 300*time.Microsecond)
	}
	for moved := now; now.Sub(moved) < 6*time.Second; {
		step(&w, &now, 100*time.Millisecond)
	}
	if n := step(&w, &now, 100*time.Millisecond); n < 32 {
		t.Errorf("6 s after the move %d go together", n)
	}
}

// One slow answer, as after a pause of this process, is forgotten.
func TestWindowGrowsAgainWhileItIsNotUsed(t *testing.T) {
	w, now := newWindow(testLate), testStart
	for _, took := range append([]time.Duration{time.Millisecond, 300 * time.Millisecond}, slices.Repeat([]time.Duration{time.Millisecond}, 100)...) {
		one := w.begin(now, 1)
		one.sent = now
		w.end(one.after(took, endedByAnswer))
		now = now.Add(took + time.Millisecond)
	}
	if w.limit != windowAtFirst {
		t.Errorf("it is %v", w.limit)
	}
}

// Nothing more is sent while an answer is late: how many are in flight by then is chance.
func TestNoRoomWhileAnAnswerIsLate(t *testing.T) {
	w, sent := windowWith(1)
	for after, want := range map[time.Duration]int{101 * time.Millisecond: 63, 102 * time.Millisecond: 0} {
		if room := w.room(testStart.Add(after)); room != want {
			t.Errorf("after %v there is room for %d, want %d", after, room, want)
		}
	}
	w.end(sent.after(102*time.Millisecond, endedByAnswer))
	if room := w.room(testStart.Add(102 * time.Millisecond)); room != 1 {
		t.Errorf("then there is room for %d", room)
	}
}

// A prompt answer shows that what was sent before it, and is overdue, went where no answer comes from.
func TestWhatGoesNowhereTakesNoRoom(t *testing.T) {
	w, stuck := windowWith(64)
	later := testStart.Add(time.Second)
	probe := w.begin(later, 1)
	probe.sent = later
	w.end(probe.after(time.Millisecond, endedByAnswer))
	if room := w.room(later); room != 64 {
		t.Errorf("there is room for %d", room)
	}
	w.end(stuck.after(3*time.Second, endedLate))
	if w.inFlight != 0 {
		t.Errorf("%d are in flight", w.inFlight)
	}
}

// Where it is farther than that the window opens, too. Taken out, one command is in flight until the process ends.
func TestWindowOpensForAServerThatIsFarAway(t *testing.T) {
	w, now := newWindow(50*time.Millisecond), testStart
	for range 100 {
		step(&w, &now, time.Millisecond)
	}
	for moved := now; now.Sub(moved) < leastFor+5*time.Second; {
		step(&w, &now, 110*time.Millisecond)
	}
	if n := step(&w, &now, 110*time.Millisecond); n < 8 {
		t.Errorf("15 s after the move %d go together", n)
	}
}

// The distance is what the quickest answer takes. It follows a server that is farther away now, but not to where each answer
// of an overloaded one would seem prompt.
func TestDistanceFollowsTheServer(t *testing.T) {
	w, _ := windowWith(0)
	now := testStart
	for range 1000 {
		now = now.Add(150 * time.Millisecond)
		w.noteDistance(now, 60*time.Millisecond, false)
	}
	farther := w.distance
	for range 1000 {
		now = now.Add(150 * time.Millisecond)
		w.noteDistance(now, time.Second, true)
	}
	limit := w.distance
	w.noteDistance(now, time.Millisecond, false)
	if farther != 60*time.Millisecond || limit > testLate || w.distance != time.Millisecond {
		t.Errorf("%v, then at most %v, then %v", farther, limit, w.distance)
	}
}

func TestEndings(t *testing.T) {
	for _, c := range []struct {
		err  error
		want ending
	}{
		{nil, endedByAnswer}, {shortfall{errors.New("")}, endedOtherwise}, {ErrNoAnswer, endedLate},
		{context.DeadlineExceeded, endedLate}, {context.Canceled, endedOtherwise}, {serverError("BUSY"), endedByAnswer},
	} {
		var ended trip
		if ended.end(c.err); ended.ending != c.want {
			t.Errorf("%v: %d, want %d", c.err, ended.ending, c.want)
		}
	}
}

type serverError string

func (e serverError) Error() string { return string(e) }
func (e serverError) RedisError()   {}

func queued(urgent bool, until time.Time) *Queued {
	d := &dispatch{until: until, slot: &waitSlot{arrived: make(chan arrival, 1)}}
	d.queued = Queued{Command: &Command{Urgent: urgent}, dispatch: d}
	return &d.queued
}

// Taken out, those are served first whose callers are about to leave.
func TestUrgentCommandsGoFirstAndThenTheNewest(t *testing.T) {
	var w waiting
	old, release, older, newest := queued(false, testStart), queued(true, testStart), queued(false, testStart), queued(false, testStart)
	w.add([]*Queued{old, release})
	w.add([]*Queued{older, newest})
	got := w.take(nil, 2)
	if len(got) != 2 || got[0] != release || got[1] != newest || w.size() != 2 {
		t.Errorf("%d were taken, %d wait", len(got), w.size())
	}
	if rest := w.take(nil, 9); len(rest) != 2 || rest[0] != old || rest[1] != older { // in their order
		t.Errorf("%d were left", len(rest))
	}
}

// Taken out, a server that answers again stays without commands for as long as it takes to probe it with all that were given up.
func TestProbesAreForCommandsThatAreAwaited(t *testing.T) {
	for _, urgent := range []bool{true, false} {
		p := idlePipeline(t, Config{})
		p.window.begin(time.Now(), windowAtFirst) // there is no room
		lives := queued(urgent, testStart)
		qs := []*Queued{queued(urgent, testStart), queued(urgent, testStart), lives, queued(urgent, testStart)}
		for _, q := range qs {
			if q.dispatch.pipeline = p; q != lives {
				q.dispatch.abandon()
			}
		}
		p.waiting.add(qs)
		p.sendStalled()
		if got, _ := p.takeWaiting(nil, trip{}); len(got) != 1 || got[0] != lives {
			t.Errorf("urgent %v: %d were taken, %d wait", urgent, len(got), p.waiting.size())
		}
	}
}

func TestWhatWouldBeAnsweredTooLateIsRefused(t *testing.T) {
	server := newWindow(testLate)
	server.usual = 50 * time.Millisecond
	for isSilent, want := range map[bool]int{false: 1, true: 2} {
		var w waiting
		abandonedOne := queued(false, testStart.Add(time.Hour))
		abandonedOne.dispatch.abandon()
		tooLate, inTime := queued(false, testStart.Add(50*time.Millisecond)), queued(false, testStart.Add(51*time.Millisecond))
		w.add([]*Queued{abandonedOne, tooLate, inTime})
		server.isSilent = isSilent
		w.shed(testStart, &server, func() error { return new(Overloaded) })
		if w.size() != want {
			t.Errorf("silent %v: %d wait, want %d", isSilent, w.size(), want)
		}
		if told := len(tooLate.dispatch.slot.arrived); (told == 1) == isSilent || len(abandonedOne.dispatch.slot.arrived) != 0 {
			t.Errorf("silent %v: %d were told", isSilent, told)
		}
	}
}

// What is in flight may have gone where no answer comes from. Taken out, each such try is one command more than the server is
// good for, for as long as others wait.
func TestOneCommandShowsWhetherAServerIsThere(t *testing.T) {
	p := idlePipeline(t, Config{})
	p.window.begin(time.Now(), windowAtFirst)
	for range 3 {
		p.waiting.add([]*Queued{queued(false, time.Now().Add(time.Hour))})
	}
	p.sendStalled()
	for i, want := range []int{1, 0} {
		qs, _ := p.takeWaiting(nil, trip{})
		p.stalled.Stop()
		if len(qs) != want {
			t.Errorf("%d. %d are sent, want %d", i, len(qs), want)
		}
	}
	if p.inFlight != 0 {
		t.Errorf("%d round trips are in flight", p.inFlight)
	}
}
