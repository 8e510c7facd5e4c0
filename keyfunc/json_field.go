package keyfunc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxElements is how many elements of an array there may be of which each is a key, or the same one
// as another: 16 lines of an order for each of as many keys as there may be.
const maxElements = 16 * maxEach

// field is a scalar somewhere in a JSON text, or one in each element of an array.
type field struct {
	part      part
	steps     []step
	anyNumber bool // not only integers
}

// step leads from an object or array to what is in it.
type step struct {
	name    string
	index   int
	isIndex bool
	every   bool // element
}

// opens is what the object or array begins with.
func (s step) opens() byte {
	if s.isIndex {
		return '['
	}
	return '{'
}

// absent says why the step leads to nothing, where that is not said by itself.
func (s step) absent() string {
	if s.every {
		return "the array is empty"
	}
	return ""
}

func parseField(what, path string) (field, error) {
	f := field{part: partOf(what, path)}
	if strings.ContainsRune(path, utf8.RuneError) {
		return field{}, fmt.Errorf("%q has a character that is not valid", path)
	}
	for name := range strings.SplitSeq(path, ".") {
		s := step{name: name}
		switch digits := strings.TrimLeft(name, "0123456789"); {
		case name == "":
			return field{}, fmt.Errorf("%q has an empty name", path)
		case digits == "":
			index, err := strconv.Atoi(name)
			if err != nil || strconv.Itoa(index) != name {
				return field{}, fmt.Errorf("%q has a number that is no index", path)
			}
			s.index, s.isIndex = index, true
		}
		f.steps = append(f.steps, s)
	}
	return f, nil
}

func (f field) fail(kind error, why string) error {
	return &partError{part: f.part, kind: kind, why: why}
}

// only returns the text of a field that is not in each element of an array.
func only(values []string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return values[0], nil
}

// all returns the texts of the field in doc, each once. It reads doc once, and no further than to the
// first mistake. That something is missing is known only at the end: there could be more
// of it before that, or no JSON.
func (f field) all(doc []byte) (values []string, err error) {
	s := &scanner{doc: doc}
	if s.next(); s.at == len(doc) {
		return nil, f.fail(ErrMissing, "there is nothing to read it from")
	}
	err = f.walk(s, f.steps, &values)
	if s.next(); s.at < len(doc) && (err == nil || errors.Is(err, ErrMissing)) {
		err = errNotJSON
	}
	switch {
	case err == errNotJSON:
		return nil, f.fail(ErrMalformed, err.Error())
	case err != nil:
		return nil, err
	}
	return values, nil
}

// walk reads a value, and adds what the steps lead to in it.
func (f field) walk(s *scanner, steps []step, values *[]string) error {
	if len(steps) == 0 {
		return f.add(s, values)
	}
	here, rest := steps[0], steps[1:]
	switch c := s.next(); {
	case c == 'n':
		return cmp.Or(s.skip(), f.fail(ErrMissing, ""))
	case c != here.opens():
		return f.fail(ErrMalformed, "something on the path is neither object nor array, or not the one that the path wants")
	}
	if err := s.enter(); err != nil {
		return err
	}
	missing := f.fail(ErrMissing, here.absent())
	for i, found := 0, 0; ; i++ {
		name, more, err := s.more()
		if err != nil || !more {
			return cmp.Or(err, missing)
		}
		leads, err := f.leads(here, i, name, found > 0)
		switch {
		case err != nil:
			return err
		case !leads:
			if err := s.skip(); err != nil {
				return err
			}
			continue
		case found == maxElements:
			return f.fail(ErrMalformed, "more than "+strconv.Itoa(maxElements)+" elements")
		}
		if found++; found == 1 {
			missing = nil
		}
		if err := f.walk(s, rest, values); errors.Is(err, ErrMissing) {
			missing = err
		} else if err != nil {
			return err
		}
	}
}

// add reads a scalar, and adds its text.
func (f field) add(s *scanner, values *[]string) error {
	value, err := f.scalar(s)
	switch {
	case err != nil:
		return err
	case slices.Contains(*values, value):
		return nil
	case len(*values) == maxEach:
		return f.fail(ErrMalformed, "more than "+strconv.Itoa(maxEach)+" different ones")
	}
	*values = append(*values, value)
	return nil
}

// leads says that a step leads to an element, or to the member of that name: the one that
// decoding into a struct and into a map both find.
func (f field) leads(here step, i int, name []byte, found bool) (bool, error) {
	if here.isIndex {
		return here.index == i || here.every, nil
	}
	text := unquote(name)
	plain := len(text)
	if at := bytes.IndexByte(name, '\\'); at > 0 {
		plain = at - 1 // without the quote
	}
	switch {
	case strings.ContainsRune(text, utf8.RuneError):
		return false, f.fail(ErrMalformed, "a name beside it has a character that is not valid")
	case text == here.name && found:
		return false, f.fail(ErrRepeated, "")
	}
	if err := f.part.isGivenAs(here.name, text); err != nil {
		return false, err
	}
	if text != here.name && jsoniterHash(text, plain) == jsoniterHash(here.name, len(here.name)) {
		return false, f.fail(ErrAmbiguous, "a name beside it is the same to jsoniter")
	}
	return text == here.name, nil
}

// scalar reads a string, an integer or a boolean, and returns its text.
func (f field) scalar(s *scanner) (string, error) {
	c := s.next()
	if c == '{' || c == '[' {
		return "", f.fail(ErrMalformed, "an object or array")
	}
	raw, err := s.scalar()
	switch {
	case err != nil:
		return "", err
	case c == 'n':
		return "", f.fail(ErrMissing, "")
	case c == 't', c == 'f':
		return string(raw), nil
	case c != '"':
		// To a handler that decodes floats, 1, 1.0 and 1e0 are one value, as are 0
		// and -0. Only one spelling of each is taken. Some decoders let what is
		// beyond an int64 wrap round.
		if _, err := strconv.ParseInt(string(raw), 10, 64); (err != nil || string(raw) == "-0") && !f.anyNumber {
			return "", f.fail(ErrMalformed, "not a plain integer that an int64 can hold")
		}
		return string(raw), nil
	}
	text := unquote(raw)
	switch {
	case text == "":
		return "", f.fail(ErrMissing, "")
	case strings.ContainsRune(text, utf8.RuneError): // stands for any half of a surrogate pair
		return "", f.fail(ErrMalformed, "a character is not valid")
	}
	return text, nil
}

// jsoniterHash is all by which jsoniter, with which gin can be built, knows the fields of a struct. It
// is easy to make another name that has the hash of one. jsoniter goes by bytes up to the first
// escape, and by characters from there on.
func jsoniterHash(name string, plain int) int64 {
	const start, factor = 0x811c9dc5, 0x1000193
	hash := int64(start)
	add := func(c int64) {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		hash = (hash ^ c) * factor
	}
	for i := range plain {
		add(int64(name[i]))
	}
	for _, c := range name[plain:] {
		add(int64(c))
	}
	return hash
}
