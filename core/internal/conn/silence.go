package conn

import (
	"context"
	"errors"
	"sync"
	"time"
)

// silence knows for how long a Redis has been asked without an answer. A caller who
// gives up early learns from it whether that was his own haste.
type silence struct {
	mu     sync.Mutex
	since  time.Time // zero: it has answered
	asked  time.Time // last
	failed bool      // not only did nobody wait for the answers
}

// ask notes that a command is about to be sent. One that was given up long ago may never
// have been sent: it says nothing.
func (s *silence) ask(timeout time.Duration) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() || !s.failed && now.After(s.asked.Add(timeout)) {
		s.since = now
	}
	s.asked = now
}

// end notes how a command has ended.
func (s *silence) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil || isRefusal(err):
		s.since, s.failed = time.Time{}, false
	case !errors.Is(err, context.Canceled):
		s.failed = true
	}
}

func (s *silence) lasts(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.since.IsZero() && time.Since(s.since) >= d
}
