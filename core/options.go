package core

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

const (
	defaultPrefix  = "lock:"
	defaultLease   = 30 * time.Second
	defaultTimeout = 2 * time.Second
	maxOwnerBytes  = 128
	// Longer ones are mistakes, which nobody would live to see the end of.
	longestLease  = 24 * time.Hour
	longestWindow = 366 * 24 * time.Hour
)

// Option changes how locks are taken. Given to [New] it is a default, given to
// [Locker.Lock], [Locker.TryLock], [Locker.Do], [Wrap] or a wrapper it is for
// that call. A later option overrides an earlier one. A bad value is reported
// as an error by the function that receives the option; wrappers panic with it
// at set-up.
type Option func(*settings)

// settings are what the options of New and of one call add up to.
type settings struct {
	lease      time.Duration
	fixed      bool
	wait       *time.Duration // nil: until the context is done
	keepFor    time.Duration
	maxHold    time.Duration
	maxWaiters *int // nil: unlimited
	owner      string
	ownerBegin string // of an owner that each attempt has for itself
	name       string

	// Of New only.
	prefix    string
	describe  string        // "": by the host
	timeout   time.Duration // 0: derived from the lease
	replicas  conn.Replicas
	sharded   bool
	logger    *slog.Logger
	observers []Observer

	ofNew      bool
	ofQuorum   bool  // the Locker is
	ofWrapper  bool  // options for it are welcome
	forWrapper []any // of those
	errs       []error
}

func (s *settings) fail(format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf("core: "+format, args...))
}

func (s *settings) apply(opts []Option) error {
	for _, o := range opts {
		if o == nil {
			s.fail("an Option is nil")
			continue
		}
		o(s)
	}
	return errors.Join(s.errs...)
}

// with returns the settings of one call.
func (s *settings) with(opts []Option) (*settings, error) {
	if len(opts) == 0 {
		return s, nil
	}
	call := *s
	call.ofNew = false
	if err := call.apply(opts); err != nil {
		return nil, err
	}
	// Attempts of one owner are one holder to Redis: one that is given up may end what another
	// has earned.
	switch {
	case call.owner != "" && call.keepFor > 0:
		return nil, errors.New("core: Owner and KeepFor do not go together, wherever KeepFor was said: a call that enters by an owner leaves no window")
	case call.owner != "" && call.ofQuorum:
		return nil, errors.New("core: Owner does not go with a Locker of NewQuorum: its members would not agree on one token")
	}
	return &call, nil
}

// CheckOptions reports what is wrong with options that a wrapper is going to
// give to every call, so that it can refuse them at set-up. On top of what
// [Locker.Lock] refuses it refuses [Owner]: calls that share an owner do not
// exclude one another. It does not block.
func CheckOptions(opts ...Option) error {
	s := settings{}
	if err := s.apply(opts); err != nil {
		return err
	}
	if s.owner != "" {
		return errors.New("core: Owner is for a single call: calls that share an owner do not exclude one another")
	}
	return nil
}

func (s *settings) duration(name string, d, longest time.Duration, set func()) {
	if d < time.Millisecond || d > longest {
		s.fail("%s(%v): give at least 1ms and at most %v", name, d, longest)
		return
	}
	set()
}

func (s *settings) onlyNew(name string, set func()) {
	if !s.ofNew {
		s.fail("%s is an option of New, not of a single call", name)
		return
	}
	set()
}

// Prefix is what the names of all locks begin with in Redis. Option of [New]
// only. The default is "lock:". Braces and control characters are refused.
// Lockers exclude one another only when they share the prefix.
func Prefix(p string) Option {
	return func(s *settings) {
		s.onlyNew("Prefix", func() {
			if strings.ContainsAny(p, "{}") || strings.ContainsFunc(p, isControl) || len(p) > store.MaxKeyBytes {
				s.fail("Prefix(%q): braces, control characters and more than %d bytes are not allowed", p, store.MaxKeyBytes)
				return
			}
			s.prefix = p
		})
	}
}

// Lease is how long a lock outlives its holder's last sign of life. While the
// lock is held a watchdog renews it every third of d, so a handler may run far
// longer; when the process dies, the lock is free after at most d. The default
// is 30 s; at least 1 ms and at most a day, in whole milliseconds. See [FixedLease] for a lock
// that is not renewed.
func Lease(d time.Duration) Option {
	return func(s *settings) {
		s.duration("Lease", d, longestLease, func() { s.lease, s.fixed = d.Truncate(time.Millisecond), false })
	}
}

// FixedLease ends the lock after d whatever happens: nothing renews it but
// [Lock.Refresh]. When it ends while the lock is held, [Lock.Context] is
// cancelled with [ErrLost]. At least 1 ms and at most a day, in whole milliseconds.
func FixedLease(d time.Duration) Option {
	return func(s *settings) {
		s.duration("FixedLease", d, longestLease, func() { s.lease, s.fixed = d.Truncate(time.Millisecond), true })
	}
}

// Wait is the longest wait for a busy lock; after it, [*BusyError], or
// [ErrUnavailable] when Redis has failed for the last second. The exchange
// with Redis that is under way when d ends may still bring the lock. Wait(0) is
// [NoWait]. The default is to wait until the context is done, or for a lease where the
// context holds another lock: others may wait for that one. A negative d is refused.
func Wait(d time.Duration) Option {
	return func(s *settings) {
		if d < 0 {
			s.fail("Wait(%v): give 0 or more", d)
			return
		}
		s.wait = &d
	}
}

// NoWait refuses a busy lock at once with [*BusyError].
func NoWait() Option { return Wait(0) }

// KeepFor is a dedup window: after a success the key stays taken until d after
// it was acquired, for everybody, so that a repeated request is refused although
// the first is done. Success is [Lock.Unlock], or nil returned to [Locker.Do];
// after [Lock.Abort], an error or a panic the key is free at once. Of nested
// locks the outermost counts. [Locker.ForceUnlock] ends a window. At least 1 ms and at
// most 366 days, in whole milliseconds.
func KeepFor(d time.Duration) Option {
	return func(s *settings) {
		s.duration("KeepFor", d, longestWindow, func() { s.keepFor = d.Truncate(time.Millisecond) })
	}
}

// MaxHold bounds how long a lock is kept alive: after d the watchdog stops and
// [Lock.Context] is cancelled with [ErrMaxHold]. The lock is free when it is
// unlocked or when its lease ends, whichever is first, so a handler that obeys
// its context ends in time. Of locks nested by context the outermost counts. At least
// 1 ms and at most 366 days.
func MaxHold(d time.Duration) Option {
	return func(s *settings) {
		s.duration("MaxHold", d, longestWindow, func() { s.maxHold = d })
	}
}

// MaxWaiters bounds how many calls of this Locker wait for one key; one more is
// refused at once with [*BusyError]. The default is no bound. At least 1.
func MaxWaiters(n int) Option {
	return func(s *settings) {
		if n < 1 {
			s.fail("MaxWaiters(%d): give at least 1, or NoWait", n)
			return
		}
		s.maxWaiters = &n
	}
}

// Owner names the owner of a lock, so that the same id re-enters it from another
// goroutine or process. It is for a single call: [New], [Wrap] and the wrappers
// refuse it, because calls that share an owner do not exclude one another. An id
// is 1 to 128 bytes without control characters and does not begin with
// "latchkey:". It goes neither with [KeepFor], whether the call or [New] has it, nor with a
// Locker of [NewQuorum]; with these the call fails.
func Owner(id string) Option {
	return func(s *settings) {
		switch {
		case s.ofNew:
			s.fail("Owner is for a single call, not for New: calls that share an owner do not exclude one another")
		case s.isOwner("Owner", id, maxOwnerBytes):
			s.owner = id
		}
	}
}

// isOwner checks what an owner is, or begins with. The text does not repeat it: errors of
// calls may be shown to anybody.
func (s *settings) isOwner(option, id string, maxBytes int) bool {
	switch {
	case id == "":
		s.fail("%s: the id is empty", option)
	case len(id) > maxBytes:
		s.fail("%s: the id has %d bytes, at most %d are allowed", option, len(id), maxBytes)
	case strings.ContainsFunc(id, isControl):
		s.fail("%s: control characters are not allowed", option)
	case strings.HasPrefix(id, store.OwnFields):
		s.fail("%s: ids that begin with %q are reserved", option, store.OwnFields)
	default:
		return true
	}
	return false
}

// Timeout bounds one exchange with Redis; after it the outcome counts as
// unknown and is compensated in the background. Option of [New] only. The default
// is 2 s or a third of the lease, whichever is less; at least 1 ms and at most a day. A
// renewal never takes longer than a third of its lease.
func Timeout(d time.Duration) Option {
	return func(s *settings) {
		s.onlyNew("Timeout", func() {
			s.duration("Timeout", d, longestLease, func() { s.timeout = d })
		})
	}
}

// Logger receives what no caller can be told: lost locks as errors, renewals in
// trouble and releases that failed as warnings; at most one line a second of each
// kind, which says how many were omitted. A [Locker.ForceUnlock] is information.
// Option of [New] only. The default is [slog.Default].
func Logger(logger *slog.Logger) Option {
	return func(s *settings) {
		s.onlyNew("Logger", func() {
			if logger == nil {
				s.fail("Logger is nil")
				return
			}
			s.logger = logger
		})
	}
}

// Fallback gives wrappers defaults of their own for [Wait], [NoWait] and
// [MaxWaiters]: these count where neither [New] nor an earlier option said
// otherwise. Other options have no effect in it.
func Fallback(opts ...Option) Option {
	return func(s *settings) {
		var own settings
		if err := own.apply(opts); err != nil {
			s.errs = append(s.errs, err)
			return
		}
		if s.wait == nil {
			s.wait = own.wait
		}
		if s.maxWaiters == nil {
			s.maxWaiters = own.maxWaiters
		}
	}
}

// WaitAtMost bounds what [Wait] says, or its default: d counts where the wait would
// be longer. It is for wrappers that know when their caller gives up. A negative d is
// refused.
func WaitAtMost(d time.Duration) Option {
	return func(s *settings) {
		if s.wait == nil || d < *s.wait {
			Wait(d)(s)
		}
	}
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }
