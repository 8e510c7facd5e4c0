package core

import (
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

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

// settings returns those of one call. They may be those of others as well.
func (l *Locker) settings(opts []Option) (*settings, error) {
	if len(opts) == 0 {
		return &l.defaults, nil
	}
	s := l.defaults
	s.Scope = option.OfCall
	if err := s.apply(opts); err != nil {
		return nil, err
	}
	return &s, nil
}
