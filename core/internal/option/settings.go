// Package option holds what core shares with core/adapter, and with nobody else: what
// options set, and where a context may have its lock.
package option

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Settings are what the options of New and of one call add up to. Observer is core's.
type Settings[Observer any] struct {
	Lease      time.Duration
	Fixed      bool
	Form       store.Form
	Wait       *time.Duration // nil: until the context is done
	KeepFor    time.Duration
	MaxHold    time.Duration
	MaxWaiters *int // nil: unlimited
	Owner      string
	OwnerBegin string // of an owner that each attempt has for itself
	Name       string
	Ticket     string         // of a lock that may have been handed over
	Resume     bool           // take no other one
	Background bool           // Redis may be asked to release the lock when its wrapper has returned
	Attempt    *store.Attempt // nil: none

	// Of New only.
	Prefix    string
	Describe  string        // "": by the host
	Timeout   time.Duration // 0: derived from the lease
	Replicas  conn.Replicas
	Sharded   bool
	Logger    *slog.Logger
	Observers []Observer

	OfNew      bool
	ForAdapter []any // values that an adapter understands, and no lock
	errs       []error
}

// Waits says that a call waits for a busy lock.
func (s *Settings[Observer]) Waits() bool { return s.Wait == nil || *s.Wait > 0 }

// ReleasesLater says that a wrapper need not wait for its release. A call that does not wait for
// the lock might be refused because of one that is under way, and a dedup window must be there when
// a caller learns that the work is done.
func (s *Settings[Observer]) ReleasesLater() bool {
	return s.Background && s.Waits() && s.KeepFor == 0
}

// Fail notes what is wrong with an option.
func (s *Settings[Observer]) Fail(format string, args ...any) {
	s.Refuse(fmt.Errorf("core: "+format, args...))
}

// Refuse is Fail with an error that is there already.
func (s *Settings[Observer]) Refuse(err error) { s.errs = append(s.errs, err) }

// Apply has options set what they say, and tells all that is wrong with them.
func Apply[Option ~func(*Settings[Observer]), Observer any](s *Settings[Observer], opts []Option) error {
	for _, o := range opts {
		if o == nil {
			s.Fail("an Option is nil")
			continue
		}
		o(s)
	}
	if err := errors.Join(s.errs...); err != nil {
		return err
	}
	// Wherever each of them was given.
	switch {
	// Attempts of one owner are one holder to Redis: one that is given up may end what
	// another has earned.
	case s.Owner != "" && s.KeepFor > 0:
		return errors.New("core: Owner and KeepFor do not go together, wherever KeepFor was said: a call that enters by an owner leaves no window")
	case s.Attempt != nil && (s.KeepFor > 0 || s.Form != store.Exclusive || s.Owner != "" || s.Ticket != ""):
		return errors.New("core: a lock of a request that counts once goes with none of KeepFor, wherever it was said, Shared, Permits, Owner and a ticket: leave them out")
	case s.Form != store.Exclusive && s.KeepFor > 0:
		return errors.New("core: Shared and Permits do not go with KeepFor, wherever it was said, for others may be at work in its window: leave one of them out")
	}
	return nil
}

// Check tells what is wrong with options that are for many calls.
func Check[Option ~func(*Settings[Observer]), Observer any](opts []Option) error {
	var s Settings[Observer]
	if err := Apply(&s, opts); err != nil {
		return err
	}
	if s.Owner != "" {
		return errors.New("core: Owner is for a single call: calls that share an owner do not exclude one another")
	}
	return nil
}
