package keyfunc

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// source is what a placeholder can take a value from.
type source[S any] struct {
	name    string
	example string // of a name in it; empty if there are none
	ours    bool   // no client chooses what it takes
	build   func(name string) (Func[S], error)
}

// named makes a source of a constructor that takes any name that is not empty.
func named[S any](f func(string) Func[S]) func(string) (Func[S], error) {
	return func(name string) (Func[S], error) { return f(name), nil }
}

// ofToken makes a source of a constructor that takes tokens only.
func ofToken[S any](f func(string) Func[S]) func(string) (Func[S], error) {
	return func(name string) (Func[S], error) {
		if !isToken(name) {
			return nil, fmt.Errorf("%q has a character that such a name cannot have", name)
		}
		return f(name), nil
	}
}

func (s source[S]) placeholder() string {
	if s.example == "" {
		return "{" + s.name + "}"
	}
	return "{" + s.name + "." + s.example + "}"
}

// templateParser goes through a template once.
type templateParser[S any] struct {
	text    string
	sources []source[S]
}

func parseTemplate[S any](text string, sources []source[S]) (Func[S], error) {
	p := templateParser[S]{text, sources}
	if !utf8.ValidString(text) {
		return nil, p.fail(strings.IndexRune(text, utf8.RuneError), "the text is not UTF-8")
	}
	var pieces []piece[S]
	ours := true // all values so far
	for pos := 0; ; {
		literal, err := p.literal(pos)
		if err != nil {
			return nil, err
		}
		if last := len(pieces) - 1; last >= 0 {
			pieces[last].escape = escapeBefore(literal)
		}
		open := pos + len(literal)
		switch {
		case open == len(text) && len(pieces) == 0:
			return nil, p.fail(0, "there is no placeholder, so everything would share one key; Const does that, if it is wanted")
		case open == len(text):
			return fill(text, pieces, literal), nil
		case literal == "" && len(pieces) > 0:
			return nil, p.fail(open, `two placeholders without text between them; put ":" there`)
		}
		src, key, end, err := p.placeholder(open)
		if err != nil {
			return nil, err
		}
		if ours && !src.ours {
			ours = false
			if !strings.HasSuffix(literal, separator) && !strings.HasSuffix(literal, nameEnd) {
				return nil, p.fail(open, `no text that ends with ":" or "=" before the first value, which could then be that of another key; begin such as "order:"`)
			}
		}
		pieces = append(pieces, piece[S]{before: literal, key: key})
		pos = end
	}
}

// literal returns the text from pos to the next placeholder or the end.
func (p templateParser[S]) literal(pos int) (string, error) {
	i := strings.IndexAny(p.text[pos:], `{}\`)
	if i < 0 {
		return p.text[pos:], nil
	}
	switch p.text[pos+i] {
	case '}':
		return "", p.fail(pos+i, `"}" without "{"`)
	case '\\': // it marks what is escaped in a value
		return "", p.fail(pos+i, "a backslash, which the text cannot have")
	}
	return p.text[pos : pos+i], nil
}

// placeholder returns the part that a placeholder stands for, and where it ends.
func (p templateParser[S]) placeholder(open int) (s source[S], f Func[S], end int, err error) {
	start := open + 1
	length := strings.IndexAny(p.text[start:], "{}")
	if length < 0 || p.text[start+length] == '{' {
		return s, nil, 0, p.fail(open, `"{" without "}"`)
	}
	inner := p.text[start : start+length]
	if i := strings.IndexFunc(inner, unicode.IsSpace); i >= 0 {
		return s, nil, 0, p.fail(start+i, "a space in a placeholder")
	}
	name, in, hasDot := strings.Cut(inner, ".")
	s, ok := p.source(name)
	switch {
	case inner == "":
		return s, nil, 0, p.fail(start, "an empty placeholder")
	case !ok:
		return s, nil, 0, p.fail(start, fmt.Sprintf("unknown source %q", name))
	case s.example == "" && hasDot:
		return s, nil, 0, p.fail(start+len(name), fmt.Sprintf("%q has no names in it; write %s", name, s.placeholder()))
	case s.example != "" && in == "":
		return s, nil, 0, p.fail(start+len(name), fmt.Sprintf("%q without a name; write such as %s", name, s.placeholder()))
	}
	f, err = s.build(in)
	if err != nil {
		return s, nil, 0, p.fail(start+len(name)+1, err.Error())
	}
	return s, f, start + length + 1, nil
}

func (p templateParser[S]) source(name string) (source[S], bool) {
	for _, s := range p.sources {
		if s.name == name {
			return s, true
		}
	}
	return source[S]{}, false
}

// fail says what is wrong where, and what there is to choose from.
func (p templateParser[S]) fail(pos int, why string) error {
	placeholders := make([]string, len(p.sources))
	for i, s := range p.sources {
		placeholders[i] = s.placeholder()
	}
	return errors.New(prefix + fmt.Sprintf("template %q: %s at %d; a placeholder is one of %s",
		p.text, why, pos, strings.Join(placeholders, ", ")))
}
