package core

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
	since  moment // 0: it has answered
	asked  moment // last
	failed bool   // not only did nobody wait for the answers
}

// ask notes that a call is about to be sent. One that was given up long ago may never
// have been sent: it says nothing.
func (s *silence) ask(timeout time.Duration) {
	now := thisMoment()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == 0 || !s.failed && now > s.asked.add(timeout) {
		s.since = now
	}
	s.asked = now
}

// end notes how a call has ended.
func (s *silence) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil || isRefusal(err):
		s.since, s.failed = 0, false
	case !errors.Is(err, context.Canceled):
		s.failed = true
	}
}

func (s *silence) lasts(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since != 0 && thisMoment() >= s.since.add(d)
}

// isSilent says that Redis, or the majority of a quorum, has not answered anybody for
// Timeout.
func (l *Locker) isSilent() bool {
	silent := 0
	for _, n := range l.backend.members() {
		if n.silence.lasts(l.timeout) {
			silent++
		}
	}
	return 2*silent > len(l.backend.members())
}
