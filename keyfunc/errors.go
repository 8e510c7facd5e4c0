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

	// ErrNotSetUp says that a part is missing because of the program and not of the
	// client: the route does not declare the path parameter, or nothing was stored
	// under the key of a [Value]. It is [ErrMissing] as well.
	ErrNotSetUp error = &special{"keyfunc: not set up", ErrMissing}

	// ErrRepeated says that a part is given more than once. It is [ErrAmbiguous] as
	// well.
	ErrRepeated error = &special{"keyfunc: given more than once", ErrAmbiguous}

	// ErrLetterCase says that the name of a part is there in another letter case. It is
	// [ErrAmbiguous] as well.
	ErrLetterCase error = &special{"keyfunc: its name is there in another letter case", ErrAmbiguous}

	// ErrPath says that a path can be read in two ways: it has escapes, or empty or dot
	// segments. It is [ErrAmbiguous] as well.
	ErrPath error = &special{"keyfunc: a path with escapes, or with empty or dot segments", ErrAmbiguous}

	// ErrNotJSON says that a body is not declared as JSON in the one way that every
	// handler understands. It is [ErrAmbiguous] as well.
	ErrNotJSON error = &special{"keyfunc: the body is not declared as JSON", ErrAmbiguous}
)

// special is a reason of a general kind.
type special struct {
	text string
	kind error
}

func (e *special) Error() string { return e.text }
func (e *special) Unwrap() error { return e.kind }

// Part names the part of a key that err is about, such as `header "Idempotency-Key"`. It
// holds no value that came from the client, so that it may be logged. It is empty when err
// does not come from a Func of this package.
func Part(err error) string {
	var e *partError
	if !errors.As(err, &e) {
		return ""
	}
	return e.part
}

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

// inside says where in a larger key an error occurred: two errors of the same canonical form
// differ in nothing else.
func inside(where string, err error) error {
	if e, ok := err.(*partError); ok { // not errors.As: nothing that was said around it may be dropped
		within := *e
		within.part = where + ", " + e.part
		return &within
	}
	return &partError{part: where, kind: err}
}
