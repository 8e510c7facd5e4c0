package core

import (
	"context"
	"log/slog"
	"strings"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// LockError is the error of a lock, other than [*BusyError]: of one of the kinds above, such
// as [ErrLost], for [errors.Is]. Programs show the text of errors to clients, and that of
// [context.Cause], which package net/http returns as an error of its own; so it has neither
// key nor owner nor address nor an error of Redis. The cause is behind Unwrap, and [Detail]
// has the whole for the log.
type LockError struct {
	// Key as the caller wrote it.
	Key string

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

// MarshalText is Error, or package json would show the fields: handlers give it errors for
// clients.
func (e *LockError) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// Unwrap returns the kind and the cause.
func (e *LockError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.kind, e.cause} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// LogValue has package slog log the details.
func (e *LockError) LogValue() slog.Value { return slog.StringValue(e.detail()) }

func (e *LockError) detail() string {
	text := withKey("core: "+e.text, e.Key)
	if e.cause != nil {
		text += ": " + Detail(e.cause)
	}
	return text
}

// Detail is the text of err with what errors of this package leave out: the key, and the
// cause, which may be an error of Redis with its address. It is for the log, never for
// clients. Package slog logs it by itself when it is given such an error as it is; Detail
// also finds one that was wrapped or joined. Of other errors it is the text; of nil it is
// empty. It does not block.
func Detail(err error) string {
	var inner []error
	switch e := err.(type) {
	case nil:
		return ""
	case interface{ detail() string }:
		return e.detail()
	case interface{ Unwrap() error }:
		inner = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	}
	text := err.Error()
	for _, err := range inner {
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

// detailedError has a text for the log, with the details of its cause.
type detailedError struct {
	text  string
	cause error
}

func (e *detailedError) Error() string  { return e.text }
func (e *detailedError) Unwrap() error  { return e.cause }
func (e *detailedError) detail() string { return e.text }

// gaveUp is the refusal of a caller whose context ended first.
func gaveUp(ctx context.Context, key string) error {
	return &LockError{Key: key, kind: ErrNotAcquired, text: "lock not acquired", shown: ctx.Err(), cause: conn.Ended(ctx)}
}

// endedWhile is the error of a request that does no harm when its outcome is unknown: the
// caller's context ended first, for that cause.
func endedWhile(ctx context.Context, doing, key string, cause error) error {
	return &LockError{Key: key, text: doing + " the lock", shown: ctx.Err(), cause: cause}
}

func unavailable(doing, key string, cause error) error {
	return &LockError{Key: key, kind: ErrUnavailable, text: doing + " the lock: redis unavailable", cause: cause}
}

func lost(key, reason string, cause error) error {
	return &LockError{Key: key, kind: ErrLost, text: "lock lost: " + reason, cause: cause}
}

func upgrade(key string) error {
	return &LockError{Key: key, kind: ErrUpgrade, text: "this context or owner already has the lock, shared or by permit; release it before taking it in another form"}
}

func notHeld(key string) error {
	return &LockError{Key: key, kind: ErrNotHeld, text: "the lock was unlocked before"}
}

func heldTooLong(key string) error {
	return &LockError{Key: key, kind: ErrMaxHold, text: "lock held for too long"}
}

func closed(doing, key string) error {
	return &LockError{Key: key, kind: ErrClosed, text: doing + " the lock: locker closed"}
}
