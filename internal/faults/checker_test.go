package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// The checks themselves: what they must find, and what they must let pass.

// hold is a visit that got the lock at from and unlocked it at to.
func hold(id string, token, from, to int64) visit {
	return visit{
		ID: id, Key: "k", Owner: id, Token: token,
		Called: from - 1, Returned: from, Released: to, Done: to + 1, Deadline: to + 1000, Outcome: confirmed,
	}
}

func with(v visit, change func(*visit)) visit {
	change(&v)
	return v
}

func TestHistoriesAreJudged(t *testing.T) {
	killed := func(v *visit) { v.Released, v.Done, v.Outcome, v.Deadline = 0, 0, "", 50 }
	for _, c := range []struct {
		name    string
		visits  []visit
		overlap bool
		want    porcupine.CheckResult
	}{
		{"one after the other", []visit{hold("a", 1, 10, 20), hold("b", 2, 30, 40)}, false, porcupine.Ok},
		{"two at once", []visit{hold("a", 1, 10, 30), hold("b", 2, 20, 40)}, true, porcupine.Illegal},
		{"one inside the other, after a third", []visit{hold("a", 1, 10, 90), hold("b", 2, 92, 95), hold("c", 3, 20, 30)}, true, porcupine.Illegal},
		{"a token that goes back", []visit{hold("a", 2, 10, 20), hold("b", 1, 30, 40)}, false, porcupine.Illegal},
		{"a token twice", []visit{hold("a", 1, 10, 20), hold("b", 1, 30, 40)}, false, porcupine.Illegal},
		{"a token below those of earlier rounds", []visit{hold("a", -7, 10, 20)}, false, porcupine.Illegal},
		{
			"Unlock confirmed to somebody whose lock had gone to another",
			[]visit{with(hold("a", 1, 10, 60), func(v *visit) { v.Told = 15 }), hold("b", 2, 20, 30)},
			false, porcupine.Illegal,
		},
		{
			"lost, told in time, taken by another",
			[]visit{with(hold("a", 1, 10, 60), func(v *visit) { v.Told, v.Outcome = 15, "lost" }), hold("b", 2, 20, 30)},
			false, porcupine.Ok,
		},
		{
			"an Unlock that nobody confirmed ends it at some time",
			[]visit{with(hold("a", 1, 10, 15), func(v *visit) { v.Outcome = "unavailable" }), hold("b", 2, 17, 30)},
			false, porcupine.Ok,
		},
		{"killed, taken after the lease", []visit{with(hold("a", 1, 10, 0), killed), hold("b", 2, 60, 70)}, false, porcupine.Ok},
		{"killed, taken before the lease was over", []visit{with(hold("a", 1, 10, 0), killed), hold("b", 2, 40, 45)}, true, porcupine.Illegal},
		{"killed while asking", []visit{{ID: "a", Key: "k", Called: 5}, hold("b", 2, 10, 20)}, false, porcupine.Ok},
		{"refused", []visit{{ID: "a", Key: "k", Called: 5, Returned: 15, Refusal: "busy"}, hold("b", 2, 10, 20)}, false, porcupine.Ok},
		{"another key", []visit{hold("a", 1, 10, 30), with(hold("b", 2, 40, 50), func(v *visit) { v.Key = "l" })}, false, porcupine.Ok},
	} {
		if found := overlaps(c.visits); (len(found) > 0) != c.overlap {
			t.Errorf("%s: overlaps %q", c.name, found)
		}
		if got := linearizable(c.visits, 0); got != c.want {
			t.Errorf("%s: linearizable: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestOverlapsAreOfOneKey(t *testing.T) {
	other := with(hold("b", 2, 20, 40), func(v *visit) { v.Key = "l" })
	if found := overlaps([]visit{hold("a", 1, 10, 30), other}); len(found) > 0 {
		t.Errorf("two keys held at once: %q", found)
	}
}

func TestBrokenPromisesAreNamed(t *testing.T) {
	late := with(hold("a", 1, 10, 20), func(v *visit) { v.Late = lateLimit + 1 })
	broken := with(hold("b", 2, 30, 40), func(v *visit) { v.Broken = "no reason" })
	found := brokenPromises([]visit{late, broken, hold("c", 3, 50, 60)})
	if len(found) != 2 || !strings.Contains(found[0], "too late") || !strings.Contains(found[1], "no reason") {
		t.Errorf("%q", found)
	}
}

// Time in which the process did not run is no reason to blame the Locker.
func TestStallsAreNotLateness(t *testing.T) {
	const ms = int64(time.Millisecond)
	s := &stalls{last: 1000 * ms, gaps: [][2]int64{{200 * ms, 300 * ms}}}
	for _, c := range []struct{ from, to, want int64 }{
		{100, 150, 50},     // it ran
		{100, 400, 200},    // and stalled in the middle
		{250, 260, 0},      // only stalled
		{900, 1015, 115},   // the last beat is not long ago
		{900, 1500, 100},   // it stalls still
		{1500, 1400, -100}, // in time
	} {
		if got := s.late(c.from*ms, c.to*ms); got != time.Duration(c.want*ms) {
			t.Errorf("from %d to %d ms: %v, want %d ms", c.from, c.to, got, c.want)
		}
	}
}

func TestStoreRejectsStaleTokens(t *testing.T) {
	s := newStore()
	read := func(owner string, token int64) access { return s.serve(access{Key: "k", Owner: owner, Token: token}) }
	write := func(a access) access {
		a.Write, a.Fenced, a.Unfenced = true, a.Fenced+1, a.Unfenced+1
		return s.serve(a)
	}
	late := read("a", 1)
	write(write(read("b", 2)))
	if !write(late).Stale {
		t.Error("a stale write was taken")
	}
	if rejected, lost := s.damage(); rejected != 1 || lost != 2 {
		t.Errorf("%d writes were rejected, %d lost without tokens; want 1 and 2", rejected, lost)
	}
	if found := s.faultsFound(); len(found) > 0 {
		t.Errorf("%q", found)
	}
	// Two holders at once, as the store sees it.
	one, other := read("c", 3), read("d", 3)
	write(one)
	write(other)
	if found := strings.Join(s.faultsFound(), "\n"); !strings.Contains(found, "same token") || !strings.Contains(found, "counter") {
		t.Errorf("%q", found)
	}
}

func TestRecoveryIsTimeAskedInVain(t *testing.T) {
	long := hold("a", 1, 10, 150)
	for _, c := range []struct {
		name   string
		visits []visit
		want   time.Duration
		taken  bool
	}{
		{"taken later", []visit{with(hold("b", 2, 130, 140), func(v *visit) { v.Called = 110 })}, 20, true},
		{"asked for since before", []visit{with(hold("b", 2, 130, 140), func(v *visit) { v.Called = 50 })}, 30, true},
		{"another asked before", []visit{{Key: "k", Called: 105, Returned: 120}, hold("b", 2, 130, 140)}, 25, true},
		{"held over the fault", []visit{long, with(hold("b", 2, 160, 170), func(v *visit) { v.Called = 50 })}, 9, true},
		{"never", []visit{hold("a", 1, 10, 20)}, 0, false},
	} {
		asked, next, taken := recovery(c.visits, "k", 100)
		got := time.Duration(next - asked)
		if taken != c.taken || taken && got != c.want {
			t.Errorf("%s: %v, %v", c.name, got, taken)
		}
	}
}
