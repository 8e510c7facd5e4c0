package store

import (
	"errors"
	"time"
)

// Attempt is one at a request that counts once, however often it comes.
type Attempt struct {
	Request string        // a digest, in hexadecimal digits
	Known   time.Duration // for how long, that it was made
	Refuse  bool          // where nobody knows whether the last attempt has done its work
}

// Answer is what a request was answered.
type Answer struct {
	Text string
	Keep time.Duration // for how long
}

// Answered says that an earlier attempt has an answer. It is an error.
type Answered struct{ Answer string }

func (*Answered) Error() string { return "the request was answered before" }

var (
	// ErrReused says that the lock is of another request.
	ErrReused = errors.New("core: the key was used for another request")
	// ErrOutcomeUnknown says that nobody knows whether the last attempt has done its work.
	ErrOutcomeUnknown = errors.New("core: the outcome of the last attempt is unknown")
)
