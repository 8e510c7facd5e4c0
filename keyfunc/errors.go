package keyfunc

import (
	"errors"
	"strings"
)

// The reasons for which there is no key. Errors wrap one of them.
var (
	// ErrMissing says that a part of the key is absent, empty or null.
	ErrMissing = errors.New("keyfunc: missing")

	// ErrAmbiguous says that a part of the key is there more than once or in a
	// form that the handler might read differently.
	ErrAmbiguous = errors.New("keyfunc: ambiguous")

	// ErrMalformed says that a part of the key does not have the form that it
	// should have, or could not be read.
	ErrMalformed = errors.New("keyfunc: malformed")

	// ErrTooLarge says that a request's body is longer than the limit.
	ErrTooLarge = errors.New("keyfunc: too large")

	// ErrSkip says that no lock is wanted: run unlocked, on purpose. See [Optional].
	ErrSkip = errors.New("keyfunc: not locked, on purpose")
)

const prefix = "keyfunc: "

// partError is why there is no key. Neither part nor why hold a client's value;
// cause may, and is therefore not printed.
type partError struct {
	part  string
	kind  error
	why   string
	cause error
}

func (e *partError) Error() string {
	s := prefix + e.part + ": " + strings.TrimPrefix(e.kind.Error(), prefix)
	if e.why != "" {
		s += ": " + e.why
	}
	return s
}

func (e *partError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// inside says where in a larger key an error occurred: only that tells apart two
// errors of the same canonical form.
func inside(where string, err error) error {
	if e, ok := err.(*partError); ok { // not errors.As: nothing that was said around it may be dropped
		within := *e
		within.part = where + ", " + e.part
		return &within
	}
	return &partError{part: where, kind: err}
}
