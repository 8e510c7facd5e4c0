package keyfunc

import (
	"strings"
	"sync"
)

const (
	separator = ":" // between parts
	nameEnd   = "=" // between a part's name and its value
)

// escaper lets no name or value contain what separates them.
var (
	escapes = []string{`\`, `\\`, separator, `\` + separator, nameEnd, `\` + nameEnd}
	escaper = strings.NewReplacer(escapes...)
)

// derived is what a Func of this package returns, before it is only a text.
type derived struct {
	key     string // the parts as they are joined: named and escaped
	name    string // of the part, if it has one and is the only one
	value   string // of the part if it is the only one; else the same as key
	source  part   // where the value of a named part comes from, for errors
	several bool   // parts, or what may be some
}

// onePart is the key of a part, whose name may be empty.
func onePart(name, value string) derived {
	key := escaper.Replace(value)
	if name != "" {
		key = escaper.Replace(name) + nameEnd + key
	}
	return derived{key: key, name: name, value: value}
}

// Key returns the key that a part of that name and value has: Key("orderID", 42) is
// "orderID=42", the very key of Param("orderID"), of the middlewares' ByParam, and of a JSON or
// Payload field of that name. It is for code that locks by itself what requests and jobs are
// guarded by: core's Lock, Do and Wrap.
//
// Give the value as it is in the request, or in the canonical form that the middleware uses (see
// [Int], [UUID]): Key makes none. An empty one has no key: the result is empty, which core
// refuses as an invalid key. It panics when name is empty.
func Key[V ~string | ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](name string, value V) string {
	if name == "" {
		panic(`keyfunc: Key needs the name of a part, such as Key("orderID", 42)`)
	}
	text, err := text(part{}, value)
	if err != nil {
		panic(err) // a text or an integer always has one
	}
	if text == "" {
		return ""
	}
	return onePart(name, text).key
}

// allParts is the key of several parts that are joined already.
func allParts(key string) derived { return derived{key: key, value: key, several: true} }

// from returns d with its source.
func (d derived) from(source part) derived {
	d.source = source
	return d
}

// trace collects what the Funcs that are called with it derive. By their keys alone a
// combination could not distinguish a name of theirs from a client's value that looks like one.
type trace struct {
	takes spelling
	notes *notes // what Describe finds out; nil: a client has sent the request or task

	mu      sync.Mutex
	derived []derived
}

// spelling says which path parameters a Param takes, and which numbers a JSON.
type spelling string

const (
	oneSpelling spelling = ""       // those that can be written in one way only
	anySpelling spelling = "any"    // all path parameters, for a Func around it brings them to one form
	anyNumber   spelling = "number" // all numbers, for two spellings of one may be two
)

func (t *trace) add(d derived) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.derived = append(t.derived, d)
}

func (t *trace) find(key string) (d derived, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range t.derived {
		if d.key == key {
			return d, true
		}
	}
	return derived{}, false
}

// A Request or Task that has a trace.
type (
	tracedRequest struct {
		Request
		*trace
	}
	tracedTask struct {
		Task
		*trace
	}
)

// traceOf returns nil where nobody collects anything.
func traceOf(s any) *trace {
	switch s := s.(type) {
	case tracedRequest:
		return s.trace
	case tracedTask:
		return s.trace
	}
	return nil
}

// withTrace returns s as it is where it is neither Request nor Task: then no
// source of names takes it.
func withTrace[S any](s S, t *trace) S {
	var traced any
	switch s := any(s).(type) {
	case tracedRequest:
		traced = tracedRequest{s.Request, t}
	case tracedTask:
		traced = tracedTask{s.Task, t}
	case Request:
		traced = tracedRequest{s, t}
	case Task:
		traced = tracedTask{s, t}
	}
	if s, ok := traced.(S); ok {
		return s
	}
	return s
}

// result returns the key that is derived, and adds it to the trace of s.
func result[S any](s S, d derived) (string, error) {
	if t := traceOf(s); t != nil {
		t.add(d)
	}
	return d.key, nil
}

// derive calls f and finds out what its key consists of: a text that no Func of
// this package has returned is one part without a name. No empty key gets further:
// hashed or named, it would no longer look empty.
func derive[S any](f Func[S], s S) (derived, error) {
	takes := oneSpelling
	if t := traceOf(s); t != nil {
		takes = t.takes
	}
	return deriveFrom(f, s, takes)
}

func deriveFrom[S any](f Func[S], s S, takes spelling) (derived, error) {
	if n := notesOf(s); n != nil {
		return describe(f, s, n)
	}
	t := &trace{takes: takes}
	key, err := f(withTrace(s, t))
	switch {
	case err != nil:
		return derived{}, err
	case key == "":
		return derived{}, &partError{part: part{text: "key"}, kind: ErrMissing}
	}
	if d, ok := t.find(key); ok {
		return d, nil
	}
	return onePart("", key), nil
}

// namedPart is a Func of one part with that name. source is what it reads.
func namedPart[S any](name string, source part, value Func[S]) Func[S] {
	return func(s S) (string, error) {
		if n := notesOf(s); n != nil {
			n.part(source)
			return result(s, onePart(name, "").from(source))
		}
		v, err := value(s)
		if err != nil {
			return "", err
		}
		return result(s, onePart(name, v).from(source))
	}
}
