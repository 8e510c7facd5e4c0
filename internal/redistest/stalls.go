//go:build go1.25

package redistest

import (
	"sync"
	"testing"
	"time"
)

// Stalls knows how long the machine kept things waiting that have nothing to do with
// what is tested: the processor was with others, or the disk. It sleeps a moment and
// then writes to a server that nobody else uses, again and again; the time that this
// takes longer than it should is a stall.
//
// A bound in a test of real processes is one on the time without stalls. Its methods
// may be called from several goroutines.
type Stalls struct {
	server *Server

	mu    sync.Mutex
	busy  time.Time // since when it sleeps or writes
	gaps  []gap
	quick time.Duration // a write, when nothing is in its way
}

// gap is a time in which things stood still.
type gap struct{ from, to time.Time }

const (
	stallBeat = 5 * time.Millisecond
	// stallNoise is what a sleep may take longer on a machine that does nothing else.
	stallNoise = time.Millisecond
)

// WatchStalls begins to watch, until the end of the test. The arguments are those of
// the servers under test: with them its own waits for the disk as they do.
func WatchStalls(tb testing.TB, args ...string) *Stalls {
	tb.Helper()
	server := Start(tb, args...)
	conn, err := server.dialRaw()
	if err != nil {
		tb.Fatal(err)
	}
	s := &Stalls{server: server, busy: time.Now(), quick: time.Hour}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			time.Sleep(stallBeat)
			written := time.Now()
			if _, err := conn.call("incr", "redistest"); err != nil {
				tb.Errorf("watching for stalls: %v", err)
				return
			}
			s.add(written, time.Now())
		}
	})
	tb.Cleanup(func() {
		close(stop)
		watching.Wait()
		_ = conn.Close()
	})
	return s
}

// add enters a sleep since s.busy and a write.
func (s *Stalls) add(written, done time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quick = min(s.quick, done.Sub(written))
	expected := s.busy.Add(stallBeat + stallNoise + s.quick)
	if done.After(expected) {
		s.gaps = append(s.gaps, gap{expected, done})
	}
	s.busy = done
}

// Without returns how much time passed between two times without stalls.
func (s *Stalls) Without(from, to time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	ran := to.Sub(from)
	for _, g := range append(s.gaps[:len(s.gaps):len(s.gaps)], gap{s.busy.Add(stallBeat + stallNoise + s.quick), to}) {
		if g.from.Before(from) {
			g.from = from
		}
		if g.to.After(to) {
			g.to = to
		}
		ran -= max(0, g.to.Sub(g.from))
	}
	return ran
}

// Since is Without up to now.
func (s *Stalls) Since(from time.Time) time.Duration { return s.Without(from, time.Now()) }
