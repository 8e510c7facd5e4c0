package core

import (
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

const ofCall, ofLock, ofTryLock = option.OfCall, option.OfLock, option.OfTryLock

// Option changes how locks are taken. Given to [New], [NewQuorum] or [Open] it is a default, given to
// [Locker.Lock], [Locker.Do], [Wrap] or middleware it is for that call. A later option overrides an
// earlier one. A bad value is an error of the function that receives the option; [Wrap] and
// middleware panic with it at set-up.
type Option struct{ set func(*settings) }

// settings are what the options of New and of one call add up to.
type settings struct {
	option.Settings

	// Of New only.
	prefix    string
	describe  string        // "": by the host
	timeout   time.Duration // 0: derived from the lease
	replicas  conn.Replicas
	sharded   bool
	logger    *slog.Logger
	observers []Observer
}

// with returns what these and further options add up to, and all that is wrong with them.
func (s settings) with(scope option.Scope, opts []Option) (*settings, error) {
	s.Scope = scope
	for _, o := range opts {
		if o.set == nil {
			o = badOption("an Option is empty: make it with a function of package core")
		}
		o.set(&s)
	}
	return &s, s.Err()
}

// badOption is an option that tells what is wrong with it.
func badOption(format string, args ...any) Option {
	return Option{set: func(s *settings) { s.Fail(format, args...) }}
}

// ofDuration is an option that sets a duration, within its bounds.
func ofDuration(name string, d, longest time.Duration, set func(*settings)) Option {
	if d < time.Millisecond || d > longest {
		return badOption("%s(%v): give at least 1ms and at most %v", name, d, longest)
	}
	return Option{set: set}
}

// ofNew is an option that calls refuse.
func ofNew(name string, set func(*settings)) Option {
	return Option{set: func(s *settings) {
		if s.Scope != option.OfLocker {
			s.Fail("%s is an option of New, not of a single call", name)
			return
		}
		set(s)
	}}
}
