package core

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/acquire"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// The kinds of failure. Every error of this package is a [*BusyError] or [*LockError] of one of them, or
// reports a misuse of the API. Their texts may be shown to anybody; [Detail] is for the log.
var (
	// ErrNotAcquired says that somebody else holds the lock, or has its ticket, or that the key is in its
	// dedup window: the wait was over, or the context ended while waiting.
	ErrNotAcquired = errors.New("core: lock not acquired")

	// ErrDeadlock says that the wait for a lock would not have ended: calls of this process, whose
	// contexts hold locks, wait for one another in a circle. It comes with ErrNotAcquired, as a
	// [*BusyError]. [Locker.LockAll] takes several locks without circles.
	ErrDeadlock = errors.New("core: deadlock")

	// ErrNoPermit says that a call with [Permits] got none: as many as it allows have one, or
	// somebody has the lock in another form. It comes with ErrNotAcquired.
	ErrNoPermit = errors.New("core: no permit")

	// ErrUpgrade says that a call wants a lock in another form than its context or owner has it, with
	// [Shared] or [Permits]: it would wait for itself. Unlock first, and read again what it protects.
	ErrUpgrade = errors.New("core: the lock is held in another form")

	// ErrLost says that a lock that was not unlocked has expired, was deleted, or somebody took it.
	ErrLost = errors.New("core: lock lost")

	// ErrHandedOver is why [Lock.Context] has ended after [Lock.Handover].
	ErrHandedOver = errors.New("core: lock handed over")

	// ErrTicket says that the ticket of [Locker.Resume] is unknown, used up or expired.
	ErrTicket = errors.New("core: no lock for the ticket")

	// ErrNotHeld says that the handle was unlocked before, or that its lock cannot be handed over or downgraded.
	ErrNotHeld = errors.New("core: lock not held")

	// ErrClosed says that the Locker is closing or closed.
	ErrClosed = errors.New("core: locker closed")

	// ErrMaxHold says that a lock was held longer than [MaxHold] permits.
	ErrMaxHold = errors.New("core: lock held for too long")

	// ErrUnavailable says that Redis gave no answer, or an error: nobody knows who holds the lock.
	ErrUnavailable = errors.New("core: redis unavailable")

	// ErrOverloaded says that Redis is asked for more than it can do in time, so it was not asked. It is [ErrUnavailable] as well.
	// [LockError].RetryAfter says when another try makes sense.
	ErrOverloaded = fmt.Errorf("%w: it is asked for more than it can do", ErrUnavailable)

	// ErrOutcomeUnknown says that [Once] with [RefuseUnknown] did not run its function: nobody knows what the last run has done. A
	// function of Once returns it to say that it does not know what it has done itself.
	ErrOutcomeUnknown = store.ErrOutcomeUnknown

	// ErrTooManyKeys says that [Locker.LockAll] was given more than 10,000 keys.
	ErrTooManyKeys = errors.New("core: too many keys")

	// ErrResultTooLarge says that a result of [Once] was not stored: its JSON is longer than 64 KiB.
	ErrResultTooLarge = errors.New("core: the result is too large to be stored")

	// ErrInvalidKey says that a key is empty or too long, or that [Locker.LockAll] has none.
	ErrInvalidKey = errors.New("core: invalid key")
)

// BusyError is how a lock is refused that somebody else holds: the wait was over, no wait was wanted, too many wait already,
// the key is in its dedup window, it comes before a lock that the context holds in the order of [Locker.LockAll], or the wait
// would not have ended ([ErrDeadlock]). It is [ErrNotAcquired].
type BusyError struct {
	Key string // as the caller wrote it
	// RetryAfter says when trying again makes sense: the exact rest of a dedup window or a fixed lease;
	// for a lock that may be renewed the rest of its lease, at most a second. Never 0.
	RetryAfter time.Duration
	// Done says that the work succeeded just now, and nobody holds the lock: its dedup window ([KeepFor])
	// lasts for RetryAfter. Otherwise somebody is at work, or will be, by the ticket of [Lock.Handover].
	Done bool
	// HeldKeys are the keys of the locks that the context of a call that waited holds, innermost first.
	// It may be held up by them, through others that wait for those.
	HeldKeys []string
	// Circle are the keys that the calls of a deadlock wait for, beginning with Key. Each of the other
	// calls holds the one before its own, and the refused call the last. Only of [ErrDeadlock].
	Circle []string

	refused acquire.Reason
	wait    time.Duration
	over    bool // its dedup window is, and nobody knows more
	permits bool // it wanted one
}

// Error says why the lock was refused. It names neither the key nor the holder: see [Detail].
func (e *BusyError) Error() string {
	by := "somebody else holds it"
	switch {
	case e.Done:
		by = "it is in its dedup window"
	case e.over:
		by = "it was in its dedup window when Redis answered last"
	}
	switch e.refused {
	case acquire.WaitOver:
		by = fmt.Sprintf("the wait of %v is over, %s", e.wait, by)
	case acquire.TooManyWaiting:
		by = "too many calls wait for it already, " + by
	case acquire.Circular:
		by = "calls wait for one another in a circle; take their locks together, with LockAll"
		if len(e.Circle) == 1 {
			by = "the call would wait for itself, for its context holds the lock"
		}
	case acquire.OutOfOrder:
		by += ", and it comes before a lock that is held here: only LockAll of both would wait for it"
	}
	return "core: lock not acquired: " + by
}

// Is reports whether target is [ErrNotAcquired], or [ErrDeadlock] or [ErrNoPermit] where it is one.
func (e *BusyError) Is(target error) bool {
	return target == ErrNotAcquired || target == ErrDeadlock && e.refused == acquire.Circular || target == ErrNoPermit && e.permits
}

// MarshalText is Error, for clients: package json would show the fields.
func (e *BusyError) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// LogValue has package slog log the details.
func (e *BusyError) LogValue() slog.Value {
	text := withKey(e.Error(), e.Key)
	if e.HeldKeys != nil {
		text += fmt.Sprintf("; its context holds %q", e.HeldKeys)
	}
	if e.Circle != nil {
		text += fmt.Sprintf("; the circle waits for %q", e.Circle)
	}
	return slog.StringValue(text)
}

// withKey has a text name the key of the lock.
func withKey(text, key string) string {
	return strings.Replace(text, "lock", "lock "+strconv.Quote(key), 1)
}

// LockError is the error of a lock, other than [*BusyError]: of one of the kinds above, such as
// [ErrLost]. Its text has neither key nor owner nor address nor an error of Redis: programs show it to
// clients. The cause is behind Unwrap, and [Detail] has the whole for the log.
type LockError struct {
	Key string // as the caller wrote it
	// RetryAfter is when those that wait could be done, of [ErrOverloaded], at a moment's guess; else 0.
	RetryAfter time.Duration

	kind  error  // nil: the cause's
	text  string // in which the first "lock" stands for the key
	shown error  // of the cause; nil: nothing
	cause error  // nil: none
}

// Error says what has happened, and nothing that came from a request or from Redis.
func (e *LockError) Error() string {
	text := "core: " + e.text
	if e.shown != nil {
		text += ": " + e.shown.Error()
	}
	return text
}

// MarshalText is Error, as that of [BusyError].
func (e *LockError) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// Unwrap returns the kind and the cause.
func (e *LockError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.kind, e.cause}, func(err error) bool { return err == nil })
}

// LogValue has package slog log the details.
func (e *LockError) LogValue() slog.Value {
	text := withKey("core: "+e.text, e.Key)
	if e.cause != nil {
		text += ": " + Detail(e.cause)
	}
	return slog.StringValue(text)
}

// Detail is the text of err with what errors of this package leave out: the key, and the cause, which may be an error of Redis
// with its address. It is for the log, never for clients. Package slog logs it by itself when it is given such an error; Detail
// also finds one that was wrapped or joined. Of other errors it is the text; of nil it is empty. It does not block.
func Detail(err error) string {
	var causes []error
	switch e := err.(type) {
	case nil:
		return ""
	case *BusyError:
		return e.LogValue().String()
	case *LockError:
		return e.LogValue().String()
	case *detailedError:
		return e.text
	case interface{ Unwrap() error }:
		causes = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		causes = e.Unwrap()
	}
	text := err.Error()
	for _, err := range causes {
		if err == nil {
			continue
		}
		short, long := err.Error(), Detail(err)
		switch {
		case short == long:
		case strings.Contains(text, short):
			text = strings.Replace(text, short, long, 1)
		default:
			text += ": " + long
		}
	}
	return text
}

type detailedError struct {
	text  string
	cause error
}

func (e *detailedError) Error() string { return e.text }
func (e *detailedError) Unwrap() error { return e.cause }
