package redistest

import (
	"testing"
	"time"
)

func TestStallsAreTakenOff(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	s := &Stalls{busy: at(100), quick: time.Hour}
	s.add(at(105), at(106)) // quick: a millisecond
	s.add(at(111), at(207)) // to be done at 113
	s.add(at(212), at(213))
	for _, c := range []struct{ from, to, want int }{
		{100, 110, 10},  // it ran
		{100, 213, 19},  // and stalled in the middle
		{150, 160, 0},   // only stalled
		{207, 219, 12},  // still in time
		{207, 1220, 13}, // it has stalled since 220
	} {
		if got := s.Without(at(c.from), at(c.to)); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("from %d to %d ms: %v, want %d ms", c.from, c.to, got, c.want)
		}
	}
}

// A server that does not answer is a stall, and so is one that did not.
func TestStallsAreMeasured(t *testing.T) {
	s := WatchStalls(t)
	Await(t, patience, "a beat", func() bool { return s.quickest() < time.Hour })
	s.server.Stop(t)
	began := time.Now()
	// Many beats long, or a busy machine's stall before it would do.
	mostly := func() bool {
		passed := time.Since(began)
		return passed > 20*stallBeat && s.Since(began) < passed/4
	}
	Await(t, patience, "a stall that lasts", mostly)
	s.server.Cont(t)
	ended := time.Now()
	Await(t, patience, "a beat", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.busy.After(ended)
	})
	if ran, passed := s.Without(began, ended), ended.Sub(began); ran > passed/2 {
		t.Errorf("of %v it ran %v", passed, ran)
	}
}

func (s *Stalls) quickest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quick
}
