package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// The kinds of failure. Every error of this package wraps one of them, apart
// from those that report a misuse of the API, and keeps its cause for
// [errors.Is] and [errors.As].
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

// Error says why the lock was refused.
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
	return fmt.Sprintf("core: lock %q not acquired: %s", e.Key, by)
}

// Is reports whether target is [ErrNotAcquired].
func (e *BusyError) Is(target error) bool { return target == ErrNotAcquired }

// failure is an error of one of the kinds above, with its cause.
type failure struct {
	kind  error
	text  string
	cause error // may be nil
}

func (f *failure) Error() string {
	if f.cause == nil {
		return "core: " + f.text
	}
	return "core: " + f.text + ": " + f.cause.Error()
}

func (f *failure) Unwrap() []error {
	if f.cause == nil {
		return []error{f.kind}
	}
	return []error{f.kind, f.cause}
}

// gaveUp is the refusal of a caller whose context ended first.
func gaveUp(ctx context.Context, key string) error {
	return &failure{ErrNotAcquired, fmt.Sprintf("lock %q not acquired", key), conn.Ended(ctx)}
}

func unavailable(doing, key string, cause error) error {
	return &failure{ErrUnavailable, fmt.Sprintf("%s lock %q: redis unavailable", doing, key), cause}
}

func lost(key, reason string, cause error) error {
	return &failure{ErrLost, fmt.Sprintf("lock %q lost: %s", key, reason), cause}
}

func notHeld(key string) error {
	return &failure{ErrNotHeld, fmt.Sprintf("lock %q was unlocked before", key), nil}
}

func heldTooLong(key string) error {
	return &failure{ErrMaxHold, fmt.Sprintf("lock %q held for too long", key), nil}
}

func closed(doing, key string) error {
	return &failure{ErrClosed, fmt.Sprintf("%s lock %q: locker closed", doing, key), nil}
}
