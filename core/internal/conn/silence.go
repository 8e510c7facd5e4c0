package conn

import (
	"context"
	"errors"
	"sync"
	"time"
)

// silence knows for how long a Redis has been asked without an answer. A caller who gives up early learns
// from it whether that was his own haste.
type silence struct {
	mu     sync.Mutex
	since  time.Time // zero: it has answered
	asked  time.Time // last
	heard  time.Time // last
	failed bool      // a command has, since; else all of them were given up
}

// lately is how long ago an answer may be for the next one to be expected at once.
const lately = 100 * time.Millisecond

// answersPromptly says that Redis has answered lately, and that nobody has waited for longer.
func (s *silence) answersPromptly(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.heard) < lately && (s.since.IsZero() || now.Sub(s.since) < lately)
}

// ask notes that a command is about to be sent. One that was given up long ago may never have been sent: it
// says nothing.
func (s *silence) ask(now time.Time, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() || !s.failed && now.After(s.asked.Add(timeout)) {
		s.since, s.failed = now, false
	}
	s.asked = now
}

// end notes how a command has ended. A refusal that passes is no answer: nobody knows whether a lock is busy.
func (s *silence) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil || isRefusal(err) && !Passes(err):
		s.since, s.failed, s.heard = time.Time{}, false, time.Now()
	case !errors.Is(err, context.Canceled):
		s.failed = true
	}
}

func (s *silence) lasts(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.since.IsZero() && time.Since(s.since) >= d
}
