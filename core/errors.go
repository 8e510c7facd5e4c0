package core

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// The kinds of failure. Every error of this package wraps one of them, apart
// from those that report a misuse of the API, and keeps its cause for
// [errors.Is] and [errors.As]. The texts of [*BusyError] and [*LockError], as which they come,
// may be shown to anybody; [Detail] is for the log.
var (
	// ErrNotAcquired says that somebody else holds the lock: the wait was over,
	// the context ended while waiting, or the key is in its dedup window.
	ErrNotAcquired = errors.New("core: lock not acquired")

	// ErrLost says that a lock is no longer ours although we did not release
	// it: it expired, was deleted, or somebody else took it.
	ErrLost = errors.New("core: lock lost")

	// ErrNotHeld says that the handle was unlocked before.
	ErrNotHeld = errors.New("core: lock not held")

	// ErrClosed says that the Locker is closing or closed.
	ErrClosed = errors.New("core: locker closed")

	// ErrMaxHold says that a lock was held longer than [MaxHold] permits.
	ErrMaxHold = errors.New("core: lock held for too long")

	// ErrUnavailable says that Redis did not answer, or answered with an error.
	// Nobody knows who holds the lock.
	ErrUnavailable = errors.New("core: redis unavailable")

	// ErrInvalidKey says that a key is empty or too long.
	ErrInvalidKey = errors.New("core: invalid key")
)

// BusyError is how a lock is refused that somebody else holds: the wait was
// over, no wait was wanted, too many wait already, or the key is in its dedup
// window. It is [ErrNotAcquired].
type BusyError struct {
	// Key as the caller wrote it.
	Key string
	// RetryAfter says when trying again makes sense. It is the exact rest of a
	// dedup window or a fixed lease; for a lock that may be renewed it is the
	// rest of its lease, at most a second. Never 0.
	RetryAfter time.Duration
	// Done says that nobody holds the lock: the work succeeded just now, and the
	// dedup window that [KeepFor] has opened lasts for RetryAfter. Otherwise somebody
	// is at work.
	Done bool

	refused refusal
	wait    time.Duration
	over    bool // its dedup window is, and nobody knows more
}

// refusal is when a busy lock is refused.
type refusal int

const (
	waitOver refusal = iota
	notWaiting
	tooManyWaiting
)

// Error says why the lock was refused. It names neither the key nor the holder: see
// [Detail].
func (e *BusyError) Error() string {
	by := "somebody else holds it"
	switch {
	case e.Done:
		by = "it is in its dedup window"
	case e.over:
		by = "it was in its dedup window when Redis answered last"
	}
	switch e.refused {
	case waitOver:
		by = fmt.Sprintf("the wait of %v is over, %s", e.wait, by)
	case tooManyWaiting:
		by = "too many calls wait for it already, " + by
	}
	return "core: lock not acquired: " + by
}

// Is reports whether target is [ErrNotAcquired].
func (e *BusyError) Is(target error) bool { return target == ErrNotAcquired }

// LogValue has package slog log the details.
func (e *BusyError) LogValue() slog.Value { return slog.StringValue(e.detail()) }

func (e *BusyError) detail() string { return withKey(e.Error(), e.Key) }
