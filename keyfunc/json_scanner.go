package keyfunc

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// maxDepth is how many objects and arrays encoding/json reads inside of one another.
const maxDepth = 10000

var errNotJSON = errors.New("not one valid JSON text in UTF-8")

// scanner reads a JSON text once, and takes what encoding/json takes, in UTF-8. What nobody asks
// for it neither copies nor decodes.
type scanner struct {
	doc   []byte
	at    int
	ends  []byte // of the objects and arrays around it
	begun bool   // something of the innermost one was read
}

// next goes to what follows white space, and returns its first byte, 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.doc); s.at++ {
		switch c := s.doc[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// more goes to the next member of the innermost object, or element of the array, and returns the
// name as it is written. At the end it leaves the object or array.
func (s *scanner) more() (name []byte, more bool, err error) {
	last := len(s.ends) - 1
	end, begun := s.ends[last], s.begun
	s.begun = true
	switch c := s.next(); {
	case c == end:
		s.at++
		s.ends = s.ends[:last]
		return nil, false, nil
	case begun && c != ',':
		return nil, false, errNotJSON
	case begun:
		s.at++
	}
	if end == ']' {
		return nil, true, nil
	}
	if s.next() != '"' {
		return nil, false, errNotJSON
	}
	if name, err = s.scalar(); err != nil {
		return nil, false, err
	}
	if s.next() != ':' {
		return nil, false, errNotJSON
	}
	s.at++
	return name, true, nil
}

// enter goes into an object or array.
func (s *scanner) enter() error {
	if len(s.ends) == maxDepth {
		return errNotJSON
	}
	s.ends, s.begun = append(s.ends, s.doc[s.at]+('}'-'{')), false // ] is as far from [
	s.at++
	return nil
}

// skip reads a value.
func (s *scanner) skip() (err error) {
	around := len(s.ends)
	for {
		if c := s.next(); c == '{' || c == '[' {
			err = s.enter()
		} else {
			_, err = s.scalar()
		}
		for more := false; !more; {
			if err != nil || len(s.ends) == around {
				return err
			}
			_, more, err = s.more()
		}
	}
}

// scalar reads a text, a number, true, false or null, and returns it as it is written.
func (s *scanner) scalar() ([]byte, error) {
	rest, length := s.doc[s.at:], 0
	switch c := s.next(); c {
	case '"':
		length = quoted(rest)
	case 't':
		length = literal(rest, "true")
	case 'f':
		length = literal(rest, "false")
	case 'n':
		length = literal(rest, "null")
	default:
		length = number(rest)
	}
	s.at += length
	if length == 0 || !utf8.Valid(rest[:length]) {
		return nil, errNotJSON
	}
	return rest[:length], nil
}

// The following return how long what b begins with is, 0 if it is not there.

func literal(b []byte, word string) int {
	if !bytes.HasPrefix(b, []byte(word)) {
		return 0
	}
	return len(word)
}

func quoted(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return 0
		case c == '\\':
			if i++; i == len(b) {
				return 0
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; i == len(b) || !isHex(b[i]) {
						return 0
					}
				}
			default:
				return 0
			}
		}
	}
	return 0
}

func number(b []byte) int {
	whole := bytes.TrimPrefix(b, []byte("-"))
	rest := digits(whole)
	if len(rest) == len(whole) || whole[0] == '0' && len(whole)-len(rest) > 1 {
		return 0
	}
	if len(rest) > 0 && rest[0] == '.' {
		from := rest[1:]
		if rest = digits(from); len(rest) == len(from) {
			return 0
		}
	}
	if len(rest) > 0 && (rest[0] == 'e' || rest[0] == 'E') {
		from := rest[1:]
		if len(from) > 0 && (from[0] == '+' || from[0] == '-') {
			from = from[1:]
		}
		if rest = digits(from); len(rest) == len(from) {
			return 0
		}
	}
	return len(b) - len(rest)
}

// digits returns what follows the digits with which b begins.
func digits(b []byte) []byte {
	for len(b) > 0 && '0' <= b[0] && b[0] <= '9' {
		b = b[1:]
	}
	return b
}

// unquote is the text of one that was read, as encoding/json decodes it.
func unquote(raw []byte) (text string) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	_ = json.Unmarshal(raw, &text) // it was found to be valid
	return text
}
