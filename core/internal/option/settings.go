// Package option is the settings of a call, as core and core/adapter make them and the rooms of core read them.
package option

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Inside is what core does for core/adapter alone. It works with types of core, which this package cannot name:
// core sets it, and core/adapter declares its methods.
var Inside any

// ContextKey is where a context of string keys has its lock.
const ContextKey = "github.com/latchkey-go/latchkey/core.Lock"

// What core/adapter needs of the store.
type (
	Attempt  = store.Attempt
	Answered = store.Answered
)

// ErrReused is that of core/adapter.
var ErrReused = store.ErrReused

const (
	// LongestLease is how long a lock may last without a renewal, LongestWindow for how long a key may be remembered.
	// Longer times are mistakes, which nobody would live to see the end of.
	LongestLease  = 24 * time.Hour
	LongestWindow = 366 * 24 * time.Hour
	// MaxOwnerBytes is how long an owner may be that a call has chosen.
	MaxOwnerBytes = 128
)

// Scope is which calls options are for.
type Scope uint8

const (
	OfMiddleware Scope = iota
	OfLocker
	OfCall    // that releases the lock itself
	OfLock    // that leaves the release to its caller
	OfTryLock // that does not wait either
)

// Settings are what options add up to.
type Settings struct {
	store.Terms
	Owner           store.Owner
	Wait            *time.Duration // nil: until the context is done
	RefusesInWindow bool           // Wait is for a busy lock, not for a dedup window
	PermitsEach     []int          // of each key, in the order of the call; nil: Form has those of all
	MaxHold         time.Duration
	MayLast         bool // the log does not say that the lock is held for long
	MaxWaiters      *int // nil: unlimited
	Name            string
	Ticket          string         // of a lock that may have been handed over
	Attempt         *store.Attempt // nil: none
	Resume          bool           // take no other lock than that of Ticket
	Release         ReleaseMode    // that wrappers were given: see WrapperRelease
	Looks           bool           // Ping takes no lock

	RefuseUnknown bool // until Once has taken it out
	OwnFailures   bool // a call of Once runs its function, and does not take the error of a run for which it has waited

	Scope      Scope
	Quorum     bool // the Locker is one of NewQuorum
	ForAdapter any  // what an adapter understands, and no lock
	errs       []error
}

// Waits says that a call waits for a busy lock.
func (s *Settings) Waits() bool { return s.Wait == nil || *s.Wait > 0 }

// ReleaseMode says who waits until Redis has released a lock.
type ReleaseMode int8

const (
	AwaitedRelease    ReleaseMode = iota // its caller
	BackgroundRelease                    // nobody: what fails after the return is compensated
)

// WrapperRelease is the mode in which a wrapper releases, as core.BackgroundRelease says.
func (s *Settings) WrapperRelease() ReleaseMode {
	if !s.Waits() || s.Window > 0 {
		return AwaitedRelease
	}
	return s.Release
}

// Fail notes what is wrong with an option.
func (s *Settings) Fail(format string, args ...any) { s.Refuse(fmt.Errorf("core: "+format, args...)) }

// Refuse is Fail with an error that is there already.
func (s *Settings) Refuse(err error) { s.errs = append(s.errs, err) }

// Err says what is wrong with the options, and which of them cannot be combined, wherever each was
// given.
func (s *Settings) Err() error {
	errs, formed := s.errs, !s.Form.Alone()
	refuse := func(wrong bool, text string) {
		if wrong {
			errs = append(errs, errors.New("core: "+text))
		}
	}
	refuse(s.Owner.Chosen != "" && s.Scope < OfCall,
		"Owner is for a single call: calls that share an owner do not exclude one another")
	refuse((s.Attempt != nil || s.Ticket != "") && s.Scope == OfLocker,
		"Attempt and Ticket are for one call, not for New: each request has its own")
	refuse(s.Release == BackgroundRelease && s.Scope == OfMiddleware && (s.Attempt != nil || s.WrapperRelease() != BackgroundRelease),
		"BackgroundRelease has no effect with NoWait, KeepFor, Once and an idempotent request: leave one of them out")
	// Attempts of one owner are one holder to Redis: one may end what another has earned.
	refuse(s.Owner.Chosen != "" && s.Window > 0,
		"Owner cannot be combined with KeepFor, wherever KeepFor was said: a call that enters by an owner leaves no window")
	refuse(s.RefuseUnknown, "RefuseUnknown is for Once and WrapOnce: after other calls there is no outcome that could be unknown")
	refuse(s.Attempt != nil && (s.Window > 0 || formed || s.Form.Weight() > 0 || s.Owner.Chosen != "" || s.Ticket != ""),
		"Once and idempotent requests cannot be combined with Shared, Permits, Weight, Owner or a ticket, nor the latter with KeepFor, "+
			"wherever it was said: leave them out")
	refuse(s.Form.Weight() > s.Form.Permits(),
		"Weight needs Permits, or PermitsEach, of at least as many: otherwise the call would wait without end")
	refuse(formed && s.Window > 0,
		"Shared and Permits cannot be combined with KeepFor, wherever it was said, for others may be at work in its window: "+
			"leave one of them out")
	refuse(s.Quorum && (s.Owner.Chosen != "" || s.Attempt != nil || formed),
		"Owner, Shared, Permits, Once and idempotent requests cannot be combined with a Locker of NewQuorum: "+
			"the locks of a quorum are exclusive, each with an owner of its own")
	return errors.Join(errs...)
}

// CheckOwner fails for an id that cannot be an owner, or begin one. The text does not repeat it:
// errors of calls may be shown to anybody.
func (s *Settings) CheckOwner(option, id string, maxBytes int) {
	switch {
	case id == "":
		s.Fail("%s: the id is empty", option)
	case len(id) > maxBytes:
		s.Fail("%s: the id has %d bytes, at most %d are allowed", option, len(id), maxBytes)
	case strings.ContainsFunc(id, IsControl):
		s.Fail("%s: control characters are not allowed", option)
	case store.IsOwnField(id):
		s.Fail("%s: the id is reserved", option)
	}
}

// IsControl reports whether r is an ASCII control character.
func IsControl(r rune) bool { return r < 0x20 || r == 0x7f }

// CheckKeys returns an error unless PermitsEach, if it was given, has the permits of so many keys.
func (s *Settings) CheckKeys(n int) error {
	if each := s.PermitsEach; each != nil && len(each) != n {
		return fmt.Errorf("core: PermitsEach has the permits of %d keys, and the call has %d", len(each), n)
	}
	return nil
}

// OfKey are the settings of the call for the lock of its i-th key.
func (s *Settings) OfKey(i int) *Settings {
	if s.PermitsEach == nil {
		return s
	}
	own := *s
	own.Form = store.Permits(s.PermitsEach[i]).Weighing(s.Form.Weight())
	return &own
}
