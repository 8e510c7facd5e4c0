package core

import (
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

const ofCall, ofLock, ofTryLock = option.OfCall, option.OfLock, option.OfTryLock

// settings are what the options of New and of one call add up to.
type settings struct {
	option.Settings

	// Of New only.
	Prefix    string
	Describe  string        // "": by the host
	Timeout   time.Duration // 0: derived from the lease
	Replicas  conn.Replicas
	Sharded   bool
	Logger    *slog.Logger
	Observers []Observer
}

// apply has options set what they say, and returns all that is wrong with them.
func (s *settings) apply(opts []Option) error {
	for _, o := range opts {
		if o.set == nil {
			o = refused("an Option is empty: make it with a function of package core")
		}
		o.set(s)
	}
	return s.Err()
}

// needsToWait refuses an option where no call waits.
func (s *settings) needsToWait(name string) {
	if s.Scope == option.OfTryLock && s.Waits() {
		s.Fail("%s has no effect in TryLock and Resume, which never wait: leave it out, or call Lock", name)
	}
}

// settings returns those of one call. They may be those of others as well.
func (l *Locker) settings(scope option.Scope, opts []Option) (*settings, error) {
	if len(opts) == 0 {
		return &l.defaults, nil
	}
	s := l.defaults
	s.Scope = scope
	if err := s.apply(opts); err != nil {
		return nil, err
	}
	return &s, nil
}
