package checker

import (
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// The checks themselves: what they must find, and what they must let pass.

// hold is a visit that got the lock at from and unlocked it at to.
func hold(id string, token, from, to int64) Visit {
	return Visit{
		ID: id, Key: "k", Owner: id, Token: token,
		Called: from - 1, Returned: from, Released: to, Done: to + 1, Deadline: to + 1000, Outcome: Confirmed,
	}
}

func with(v Visit, change func(*Visit)) Visit {
	change(&v)
	return v
}

func TestHistoriesAreJudged(t *testing.T) {
	sharing := func(v *Visit) { v.Form.Shared = true }
	downgraded := func(v *Visit) { v.Downgraded, v.Sharing = 20, 22 }
	ofTwo := func(v *Visit) { v.Form.Permits = 2 }
	ofThree := func(v *Visit) { v.Form.Permits = 3 }
	twoOfThree := func(v *Visit) { v.Form.Permits, v.Form.Weight = 3, 2 }
	killed := func(v *Visit) { v.Released, v.Done, v.Outcome, v.Deadline = 0, 0, "", 50 }
	for _, c := range []struct {
		name    string
		visits  []Visit
		overlap bool
		want    porcupine.CheckResult
	}{
		{"one after the other", []Visit{hold("a", 1, 10, 20), hold("b", 2, 30, 40)}, false, porcupine.Ok},
		{"two at once", []Visit{hold("a", 1, 10, 30), hold("b", 2, 20, 40)}, true, porcupine.Illegal},
		{"one inside the other, after a third", []Visit{hold("a", 1, 10, 90), hold("b", 2, 92, 95), hold("c", 3, 20, 30)}, true, porcupine.Illegal},
		{"a token that goes back", []Visit{hold("a", 2, 10, 20), hold("b", 1, 30, 40)}, false, porcupine.Illegal},
		{"a token twice", []Visit{hold("a", 1, 10, 20), hold("b", 1, 30, 40)}, false, porcupine.Illegal},
		{"a token below those of earlier rounds", []Visit{hold("a", -7, 10, 20)}, false, porcupine.Illegal},
		{
			"Unlock confirmed to somebody whose lock had gone to another",
			[]Visit{with(hold("a", 1, 10, 60), func(v *Visit) { v.Told = 15 }), hold("b", 2, 20, 30)},
			false, porcupine.Illegal,
		},
		{
			"lost, told in time, taken by another",
			[]Visit{with(hold("a", 1, 10, 60), func(v *Visit) { v.Told, v.Outcome = 15, "lost" }), hold("b", 2, 20, 30)},
			false, porcupine.Ok,
		},
		{
			"an Unlock that nobody confirmed ends it at some time",
			[]Visit{with(hold("a", 1, 10, 15), func(v *Visit) { v.Outcome = "unavailable" }), hold("b", 2, 17, 30)},
			false, porcupine.Ok,
		},
		{"killed, taken after the lease", []Visit{with(hold("a", 1, 10, 0), killed), hold("b", 2, 60, 70)}, false, porcupine.Ok},
		{"killed, taken before the lease was over", []Visit{with(hold("a", 1, 10, 0), killed), hold("b", 2, 40, 45)}, true, porcupine.Illegal},
		{"killed while asking", []Visit{{ID: "a", Key: "k", Called: 5}, hold("b", 2, 10, 20)}, false, porcupine.Ok},
		{"refused", []Visit{{ID: "a", Key: "k", Called: 5, Returned: 15, Refusal: "busy"}, hold("b", 2, 10, 20)}, false, porcupine.Ok},
		{"another key", []Visit{hold("a", 1, 10, 30), with(hold("b", 2, 40, 50), func(v *Visit) { v.Key = "l" })}, false, porcupine.Ok},
		{
			"sharers at once",
			[]Visit{with(hold("a", 1, 10, 50), sharing), with(hold("b", 2, 20, 40), sharing), with(hold("c", 3, 30, 60), sharing), hold("d", 4, 70, 80)},
			false, porcupine.Ok,
		},
		{"alone beside one that shares", []Visit{with(hold("a", 1, 10, 30), sharing), hold("b", 2, 20, 40)}, true, porcupine.Illegal},
		{"sharing beside one that is alone", []Visit{hold("a", 1, 10, 30), with(hold("b", 2, 20, 40), sharing)}, true, porcupine.Illegal},
		{
			"alone beside a sharer that stayed when another left",
			[]Visit{with(hold("a", 1, 10, 90), sharing), with(hold("b", 2, 20, 30), sharing), hold("c", 3, 40, 50)},
			true, porcupine.Illegal,
		},
		{"a sharer whose process was granted it before another sharer", []Visit{with(hold("a", 2, 10, 20), sharing), with(hold("b", 1, 30, 40), sharing)}, false, porcupine.Ok},
		{
			"a sharer with a smaller token than one that was alone meanwhile",
			[]Visit{with(hold("a", 2, 10, 20), sharing), hold("b", 3, 22, 24), with(hold("c", 1, 30, 40), sharing)},
			false, porcupine.Illegal,
		},
		{"a permit with a smaller token than a sharer before", []Visit{with(hold("a", 2, 10, 20), sharing), with(hold("b", 1, 30, 40), ofTwo)}, false, porcupine.Illegal},
		{
			"alone with a smaller token than one of two sharers before",
			[]Visit{with(hold("a", 3, 10, 20), sharing), with(hold("b", 1, 25, 28), sharing), hold("c", 2, 30, 40)},
			false, porcupine.Illegal,
		},
		{
			"Unlock confirmed to a sharer after the lock had gone to somebody alone",
			[]Visit{with(with(hold("a", 1, 10, 60), sharing), func(v *Visit) { v.Told = 15 }), hold("b", 2, 20, 30)},
			false, porcupine.Illegal,
		},
		{"a sharer beside one that was downgraded", []Visit{with(hold("a", 1, 10, 50), downgraded), with(hold("b", 2, 21, 60), sharing)}, false, porcupine.Ok},
		{"a sharer before that", []Visit{with(hold("a", 1, 10, 50), downgraded), with(hold("b", 2, 15, 60), sharing)}, true, porcupine.Illegal},
		{"a sharer with a smaller token", []Visit{with(hold("a", 2, 10, 50), downgraded), with(hold("b", 1, 30, 60), sharing)}, false, porcupine.Illegal},
		{"alone beside one that was downgraded", []Visit{with(hold("a", 1, 10, 50), downgraded), hold("b", 2, 30, 40)}, true, porcupine.Illegal},
		{
			"downgraded, as nobody has confirmed",
			[]Visit{with(hold("a", 1, 10, 50), func(v *Visit) { v.Downgraded = 20 }), with(hold("b", 2, 30, 60), sharing)},
			false, porcupine.Ok,
		},
		{
			"a downgrade that nobody has confirmed, or done",
			[]Visit{with(hold("a", 1, 10, 50), func(v *Visit) { v.Downgraded = 20 }), hold("b", 2, 60, 70)},
			false, porcupine.Ok,
		},
		{"a downgrade after the lock had gone to another", []Visit{
			with(hold("a", 1, 10, 60), func(v *Visit) { v.Told, v.Outcome, v.Downgraded, v.Sharing = 15, "lost", 35, 36 }), hold("b", 2, 20, 30),
		}, false, porcupine.Illegal},
		{"two of two", []Visit{with(hold("a", 1, 10, 30), ofTwo), with(hold("b", 2, 20, 50), ofTwo), with(hold("c", 3, 40, 60), ofTwo)}, false, porcupine.Ok},
		{"three of two", []Visit{with(hold("a", 1, 10, 30), ofTwo), with(hold("b", 2, 20, 40), ofTwo), with(hold("c", 3, 25, 60), ofTwo)}, true, porcupine.Illegal},
		{"one of three beside two of two", []Visit{with(hold("a", 1, 10, 30), ofTwo), with(hold("b", 2, 20, 40), ofTwo), with(hold("c", 3, 25, 60), ofThree)}, false, porcupine.Ok},
		{"one of two beside two of three", []Visit{with(hold("a", 1, 10, 30), ofThree), with(hold("b", 2, 20, 40), ofThree), with(hold("c", 3, 25, 60), ofTwo)}, true, porcupine.Illegal},
		{"two of three beside one", []Visit{with(hold("a", 1, 10, 30), twoOfThree), with(hold("b", 2, 20, 40), ofThree)}, false, porcupine.Ok},
		{"two of three beside two", []Visit{with(hold("a", 1, 10, 30), twoOfThree), with(hold("b", 2, 20, 40), twoOfThree)}, true, porcupine.Illegal},
		{"one of two beside two of three", []Visit{with(hold("a", 1, 10, 30), twoOfThree), with(hold("b", 2, 20, 40), ofTwo)}, true, porcupine.Illegal},
		{"two of three beside one and one", []Visit{with(hold("a", 1, 10, 30), ofThree), with(hold("b", 2, 15, 40), ofThree), with(hold("c", 3, 20, 40), twoOfThree)}, true, porcupine.Illegal},
		{
			"a third permit when the second one's process was killed and its lease over",
			[]Visit{with(hold("a", 1, 10, 90), ofTwo), with(with(hold("b", 2, 20, 0), killed), ofTwo), with(hold("c", 3, 60, 70), ofTwo)},
			false, porcupine.Ok,
		},
		{
			"a third permit before the lease of a killed process was over",
			[]Visit{with(hold("a", 1, 10, 90), ofTwo), with(with(hold("b", 2, 20, 0), killed), ofTwo), with(hold("c", 3, 40, 70), ofTwo)},
			true, porcupine.Illegal,
		},
		{"a permit beside a sharer", []Visit{with(hold("a", 1, 10, 30), ofTwo), with(hold("b", 2, 20, 50), sharing)}, true, porcupine.Illegal},
		{"alone beside a permit", []Visit{with(hold("a", 1, 10, 30), ofTwo), hold("b", 2, 20, 50)}, true, porcupine.Illegal},
	} {
		if found := Overlaps(c.visits); (len(found) > 0) != c.overlap {
			t.Errorf("%s: overlaps %q", c.name, found)
		}
		if got := Linearizable(c.visits, 0, time.Minute); got != c.want {
			t.Errorf("%s: linearizable: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestOverlapsAreOfOneKey(t *testing.T) {
	other := with(hold("b", 2, 20, 40), func(v *Visit) { v.Key = "l" })
	if found := Overlaps([]Visit{hold("a", 1, 10, 30), other}); len(found) > 0 {
		t.Errorf("two keys held at once: %q", found)
	}
}

func TestBrokenPromisesAreNamed(t *testing.T) {
	const lateLimit = 100 * time.Millisecond
	late := with(hold("a", 1, 10, 20), func(v *Visit) { v.Late = lateLimit + 1 })
	broken := with(hold("b", 2, 30, 40), func(v *Visit) { v.Broken = "no reason" })
	found := BrokenPromises([]Visit{late, broken, hold("c", 3, 50, 60)}, lateLimit)
	if len(found) != 2 || !strings.Contains(found[0], "too late") || !strings.Contains(found[1], "no reason") {
		t.Errorf("%q", found)
	}
}

func TestStoreRejectsStaleTokens(t *testing.T) {
	s := NewStore()
	read := func(owner string, token int64) Access { return s.Serve(Access{Key: "k", Owner: owner, Token: token}) }
	write := func(a Access) Access {
		a.Write, a.Fenced, a.Unfenced = true, a.Fenced+1, a.Unfenced+1
		return s.Serve(a)
	}
	late := read("a", 1)
	write(write(read("b", 2)))
	if !write(late).Stale {
		t.Error("a stale write was taken")
	}
	if rejected, lost := s.Damage(); rejected != 1 || lost != 2 {
		t.Errorf("%d writes were rejected, %d lost without tokens; want 1 and 2", rejected, lost)
	}
	if found := s.FaultsFound(); len(found) > 0 {
		t.Errorf("%q", found)
	}
	// Two holders at once, as the store sees it.
	one, other := read("c", 3), read("d", 3)
	write(one)
	write(other)
	if found := strings.Join(s.FaultsFound(), "\n"); !strings.Contains(found, "same token") || !strings.Contains(found, "counter") {
		t.Errorf("%q", found)
	}
}
