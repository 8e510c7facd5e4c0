package keyfunc

import (
	"cmp"
	"errors"
	"strconv"
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

	// ErrBodyRead says that middleware has read the body before, and has not put it back: it belongs inside of the lock. That is a
	// mistake of the program, and nothing is missing for which [Optional] would do without a lock.
	ErrBodyRead = errors.New("keyfunc: the body was read before")

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
	return e.part.text
}

// PartName is the name alone of the part that err is about, as the program has given it to a Func of this package:
// "Idempotency-Key" of [Header], the path "order.id" of [JSON], "items.*.sku" of [JSONEach], the key of a [Value] if
// it is a text. What is around a part, such as [Join], [All] or [Int], changes nothing; a part without a name has that of a
// [Named] around it. It is "body" when that could not be read or is too large, "path" where [ValidatePath] has failed, and
// empty when there is no name.
//
// It is for clients. No value of theirs is in it, but the name itself could be, of a Func that is made for a request with
// what that has sent: [Description].Names has those that are known before.
func PartName(err error) string {
	var e *partError
	if !errors.As(err, &e) {
		return ""
	}
	return e.part.name
}

// part is what an error is about.
type part struct {
	text string // for people, such as `header "Idempotency-Key"`
	name string // the program's word in it, if there is one
}

// partOf is a part of that kind and name.
func partOf(kind, name string) part { return part{kind + " " + strconv.Quote(name), name} }

const prefix = "keyfunc: "

// partError is why there is no key. Neither part nor why hold a client's value;
// cause may, and is therefore not printed.
type partError struct {
	part  part
	kind  error
	why   string
	cause error
}

func (e *partError) Error() string {
	s := prefix + e.part.text + ": " + strings.TrimPrefix(e.kind.Error(), prefix)
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
// differ in nothing else. The innermost name is the part's.
func inside(where part, err error) error {
	where.name = cmp.Or(PartName(err), where.name)
	if e, ok := err.(*partError); ok { // not errors.As: nothing that was said around it may be dropped
		within := *e
		within.part = part{where.text + ", " + e.part.text, where.name}
		return &within
	}
	return &partError{part: where, kind: err}
}
