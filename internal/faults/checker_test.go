package faults

import (
	"testing"
	"time"
)

// The checks of this package: what they must find, and what they must let pass.

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
