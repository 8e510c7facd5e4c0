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
var escaper = strings.NewReplacer(`\`, `\\`, separator, `\`+separator, nameEnd, `\`+nameEnd)

// derived is what a Func of this package returns, before it is only a text.
type derived struct {
	key     string // the parts as they are joined: named and escaped
	name    string // of the part, if it has one and is the only one
	value   string // of the part if it is the only one; else the same as key
	source  string // where the value of a named part comes from, for errors
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

// allParts is the key of several parts that are joined already.
func allParts(key string) derived { return derived{key: key, value: key, several: true} }

// listener is told what the Funcs that are called with it have derived. By their
// keys alone a combination could not tell a name of theirs from a client's value
// that looks like one.
type listener struct {
	told  bool // how to read a path parameter that has several spellings
	mu    sync.Mutex
	heard []derived
}

func (l *listener) hear(d derived) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, d)
}

func (l *listener) find(key string) (d derived, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.heard {
		if d.key == key {
			return d, true
		}
	}
	return derived{}, false
}

// A Request or Task that has a listener.
type (
	heardRequest struct {
		Request
		*listener
	}
	heardTask struct {
		Task
		*listener
	}
)

// derive calls f and finds out what its key consists of: a text that no Func of
// this package has returned is one part without a name. It sees to it that no empty
// key gets further: hashed or named, it would no longer look empty.
func derive[S any](f Func[S], s S) (derived, error) { return deriveAs(f, s, isTold(s)) }

// deriveAs is derive for a Param that is told how to read several spellings, or is not.
func deriveAs[S any](f Func[S], s S, told bool) (derived, error) {
	if n := notesOf(s); n != nil {
		return describe(f, s, n)
	}
	l := &listener{told: told}
	key, err := f(withListener(s, l))
	switch {
	case err != nil:
		return derived{}, err
	case key == "":
		return derived{}, &partError{part: "key", kind: ErrMissing}
	}
	if d, ok := l.find(key); ok {
		return d, nil
	}
	return onePart("", key), nil
}

// withListener returns s as it is where it is neither Request nor Task: then no
// source of names takes it.
func withListener[S any](s S, l *listener) S {
	var heard any
	switch s := any(s).(type) {
	case heardRequest:
		heard = heardRequest{s.Request, l}
	case heardTask:
		heard = heardTask{s.Task, l}
	case Request:
		heard = heardRequest{s, l}
	case Task:
		heard = heardTask{s, l}
	}
	if s, ok := heard.(S); ok {
		return s
	}
	return s
}

// tell returns the key that is derived, and tells whoever listens how.
func tell[S any](s S, d derived) (string, error) {
	switch s := any(s).(type) {
	case heardRequest:
		s.hear(d)
	case heardTask:
		s.hear(d)
	}
	return d.key, nil
}

// namedPart is a Func of one part with that name. source is what it reads.
func namedPart[S any](name, source string, value Func[S]) Func[S] {
	return func(s S) (string, error) {
		if n := notesOf(s); n != nil {
			n.part(source)
			return tell(s, onePart(name, ""))
		}
		v, err := value(s)
		if err != nil {
			return "", err
		}
		return tell(s, fromSource(source, onePart(name, v)))
	}
}

func fromSource(source string, d derived) derived {
	d.source = source
	return d
}

// told is canonical for a form that says how to read a path parameter, and is of one part.
func told[S any](constructor string, f Func[S], form func(value string) (string, error)) Func[S] {
	mustFunc(constructor, f)
	return convert(f, true, func(d derived) (string, error) {
		if d.several {
			return "", &partError{part: constructor, kind: ErrMalformed, why: "it is around several parts: put one around each"}
		}
		return form(d.value)
	})
}

func isTold(s any) bool {
	heard, ok := s.(heardRequest)
	return ok && heard.told
}

// canonical is f with its value in another form, and its name as it was. A told around it sees
// that form only, so it does not say how to read what f takes.
func canonical[S any](f Func[S], form func(value string) (string, error)) Func[S] {
	return convert(f, false, func(d derived) (string, error) { return form(d.value) })
}

// convert is f with its value in another form.
func convert[S any](f Func[S], told bool, form func(d derived) (string, error)) Func[S] {
	return func(s S) (string, error) {
		d, err := deriveAs(f, s, told)
		switch {
		case err != nil:
			return "", err
		case notesOf(s) != nil: // there is no value
			return tell(s, d)
		}
		value, err := form(d)
		switch {
		case err != nil && d.source != "":
			return "", inside(d.source, err)
		case err != nil:
			return "", err
		}
		return tell(s, fromSource(d.source, onePart(d.name, value)))
	}
}
