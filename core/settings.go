package core

import (
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/option"
)

const (
	defaultPrefix  = "lock:"
	defaultLease   = 30 * time.Second
	defaultTimeout = 2 * time.Second
	// Longer ones are mistakes, which nobody would live to see the end of.
	longestLease  = 24 * time.Hour
	longestWindow = 366 * 24 * time.Hour
)

// settings are what the options of New and of one call add up to.
type settings = option.Settings[Observer]

// settings returns those of one call.
func (l *Locker) settings(opts []Option) (*settings, error) {
	if len(opts) == 0 {
		return &l.defaults, nil
	}
	call := l.defaults
	call.OfNew = false
	if err := option.Apply(&call, opts); err != nil {
		return nil, err
	}
	// Attempts of one owner are one holder to Redis: one that is given up may end what another
	// has earned.
	switch {
	case call.Owner != "" && call.KeepFor > 0:
		return nil, errors.New("core: Owner and KeepFor do not go together, wherever KeepFor was said: a call that enters by an owner leaves no window")
	case call.Owner != "" && call.OfQuorum:
		return nil, errors.New("core: Owner does not go with a Locker of NewQuorum: its members would not agree on one token")
	}
	return &call, nil
}

// ofDuration is an option that sets a duration, within its bounds.
func ofDuration(name string, d, longest time.Duration, set Option) Option {
	return func(s *settings) {
		if d < time.Millisecond || d > longest {
			s.Fail("%s(%v): give at least 1ms and at most %v", name, d, longest)
		}
		set(s)
	}
}

// ofNew is an option that calls refuse.
func ofNew(name string, set Option) Option {
	return func(s *settings) {
		if !s.OfNew {
			s.Fail("%s is an option of New, not of a single call", name)
			return
		}
		set(s)
	}
}
