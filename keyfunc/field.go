package keyfunc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// field is a scalar somewhere in a JSON text.
type field struct {
	part  string // names it in errors
	steps []step
}

// step leads from an object or array to what is in it.
type step struct {
	name    string
	index   int
	isIndex bool
}

func parseField(what, path string) (field, error) {
	f := field{part: what + " " + strconv.Quote(path)}
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

// in returns the text of the field in doc.
func (f field) in(doc []byte) (string, error) {
	value, err := f.find(doc)
	if err != nil {
		return "", err
	}
	return f.scalar(value)
}

// find returns what is at the end of the path in doc.
func (f field) find(doc []byte) (json.RawMessage, error) {
	switch {
	case len(bytes.TrimLeft(doc, " \t\r\n")) == 0:
		return nil, f.fail(ErrMissing, "there is nothing to read it from")
	case !utf8.Valid(doc): // the decoder would replace it, so that many texts become one
		return nil, f.fail(ErrMalformed, "not UTF-8")
	case !json.Valid(doc): // also what follows the first value, which a Decoder never sees
		return nil, f.fail(ErrMalformed, "not one valid JSON text")
	}
	return f.walk(doc, f.steps)
}

func (f field) walk(at json.RawMessage, steps []step) (_ json.RawMessage, err error) {
	for _, s := range steps {
		if s.isIndex {
			at, err = f.element(at, s.index)
		} else {
			at, err = f.member(at, s.name)
		}
		if err != nil {
			return nil, err
		}
	}
	return at, nil
}

// member returns the member of an object that decoding into a struct and into a
// map both find by that name.
func (f field) member(object json.RawMessage, name string) (json.RawMessage, error) {
	dec, err := f.open(object, '{')
	if err != nil {
		return nil, err
	}
	var found json.RawMessage
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, f.invalid(err)
		}
		switch key, _ := tok.(string); {
		case strings.ContainsRune(key, utf8.RuneError):
			return nil, f.fail(ErrMalformed, "a name beside it has a character that is not valid")
		case key == name && found == nil:
			err = dec.Decode(&found)
		case key == name:
			return nil, f.fail(ErrRepeated, "")
		case sameLetters(key, name):
			return nil, f.fail(ErrLetterCase, "")
		default:
			err = dec.Decode(&ignored{})
		}
		if err != nil {
			return nil, f.invalid(err)
		}
	}
	if found == nil {
		return nil, f.fail(ErrMissing, "")
	}
	return found, nil
}

// element returns an element of an array.
func (f field) element(array json.RawMessage, index int) (json.RawMessage, error) {
	dec, err := f.open(array, '[')
	if err != nil {
		return nil, err
	}
	for i := 0; dec.More(); i++ {
		var found json.RawMessage
		if err := dec.Decode(&found); err != nil {
			return nil, f.invalid(err)
		}
		if i == index {
			return found, nil
		}
	}
	return nil, f.fail(ErrMissing, "")
}

// open returns a decoder behind the delimiter with which value must begin.
func (f field) open(value json.RawMessage, delim json.Delim) (*json.Decoder, error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	tok, err := dec.Token()
	switch {
	case err != nil:
		return nil, f.invalid(err)
	case tok == nil:
		return nil, f.fail(ErrMissing, "")
	case tok != delim:
		return nil, f.fail(ErrMalformed, "something on the path is neither object nor array, or not the one that the path wants")
	}
	return dec, nil
}

// scalar returns the text of a string, an integer or a boolean.
func (f field) scalar(value json.RawMessage) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	tok, err := dec.Token()
	if err != nil {
		return "", f.invalid(err)
	}
	switch v := tok.(type) {
	case nil:
		return "", f.fail(ErrMissing, "")
	case bool:
		return strconv.FormatBool(v), nil
	case json.Number:
		// To a handler that decodes floats, 1, 1.0 and 1e0 are one value, as are 0
		// and -0. Only one spelling of each is taken. Some decoders let what is
		// beyond an int64 wrap round.
		if _, err := strconv.ParseInt(v.String(), 10, 64); err != nil || v == "-0" {
			return "", f.fail(ErrMalformed, "not a plain integer that an int64 can hold")
		}
		return v.String(), nil
	case string:
		switch {
		case v == "":
			return "", f.fail(ErrMissing, "")
		case strings.ContainsRune(v, utf8.RuneError): // stands for any half of a surrogate pair
			return "", f.fail(ErrMalformed, "a character is not valid")
		}
		return v, nil
	}
	return "", f.fail(ErrMalformed, "an object or array")
}

// invalid reports a text that the decoder refuses although it is valid.
func (f field) invalid(err error) error {
	return &partError{part: f.part, kind: ErrMalformed, why: "the decoder refuses it", cause: err}
}

// sameLetters reports whether some decoder takes one name for the other.
// encoding/json folds as EqualFold does; others, which gin can be built with, go by
// the lower case.
func sameLetters(a, b string) bool {
	//lint:ignore SA6005 the two folds differ: "ſ" and "s" by one, "İ" and "i̇" by the other
	return strings.EqualFold(a, b) || strings.ToLower(a) == strings.ToLower(b)
}

// ignored takes any JSON value and keeps nothing of it.
type ignored struct{}

// UnmarshalJSON does nothing.
func (*ignored) UnmarshalJSON([]byte) error { return nil }
