package core

import (
	"errors"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

const (
	defaultPrefix  = "lock:"
	defaultLease   = 30 * time.Second
	defaultTimeout = 2 * time.Second
	// Longer ones are mistakes, which nobody would live to see the end of.
	longestLease  = 24 * time.Hour
	longestWindow = option.LongestWindow
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

// apply has options set what they say, and tells all that is wrong with them.
func (s *settings) apply(opts []Option) error {
	for _, o := range opts {
		if o.set == nil {
			s.Fail("an Option is empty: make it with a function of package core")
			continue
		}
		o.set(s)
	}
	return s.Err()
}

// validate tells what is wrong with options that are for many calls.
func validate(opts []Option) error {
	var s settings
	if err := s.apply(opts); err != nil {
		return err
	}
	if s.Owner != "" {
		return errors.New("core: Owner is for a single call: calls that share an owner do not exclude one another")
	}
	return nil
}
