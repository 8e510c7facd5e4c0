package keyfunc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Template derives a key by a line of text, such as
// "order:{param.orderID}:user:{header.X-User-ID}". What stands in braces is
// replaced by a part of the request:
//
//	{param.orderID}     as [Param] takes it
//	{query.item}        [Query]
//	{header.X-User-ID}  [Header]
//	{cookie.session}    [Cookie]
//	{json.order.id}     [JSON]
//	{value.userID}      [Value], for keys that are strings
//	{ip}                [RemoteIP]
//
// Values have no names, so the text before the first one says what the key is of: it
// ends with a colon or an equals sign, and two templates that begin alike should be
// of the same things. "orderID={param.id}" has the keys of [Param]("orderID").
//
// Values are escaped with a backslash, as [Join] does it: a backslash, a colon, an
// equals sign, and the character that follows the placeholder in the template. So no
// value can imitate the template's text, and two different lists of values never share
// a key.
//
// All parts are required: the Func fails with the error of the first that fails, and
// [Optional] is for the whole. For canonical forms use Join with [Int] and [UUID].
//
// Template returns an error, which shows the position as a byte offset, when the text
// is empty or not UTF-8, has no placeholder, none or another text before the first, a
// brace without its counterpart, a backslash, an unknown source or a bad name, or two
// placeholders without text between them.
func Template(t string) (Func[Request], error) {
	return parseTemplate(t, []source[Request]{
		{name: "param", example: "orderID", build: named(Param)},
		{name: "query", example: "id", build: named(Query)},
		{name: "header", example: "X-User-ID", build: ofToken(Header)},
		{name: "cookie", example: "session", build: ofToken(Cookie)},
		{name: "json", example: "order.id", build: func(path string) (Func[Request], error) { return jsonBody(path) }},
		{name: "value", example: "userID", build: named(func(key string) Func[Request] { return Value(key) })},
		{name: "ip", build: named(func(string) Func[Request] { return RemoteIP() })},
	})
}

// TaskTemplate is [Template] for tasks, as in "{type}:{payload.order.id}":
//
//	{type}              as [TaskType] takes it
//	{payload.order.id}  [Payload]
//
// It may begin with the type, which the program chooses.
func TaskTemplate(t string) (Func[Task], error) {
	return parseTemplate(t, []source[Task]{
		{name: "type", ours: true, build: named(func(string) Func[Task] { return TaskType() })},
		{name: "payload", example: "order.id", build: payload},
	})
}

// piece is a placeholder and the text before it.
type piece[S any] struct {
	before string
	key    Func[S]
	escape *strings.Replacer
}

// fill returns the Func of a parsed template. A value ends at the first separator
// that is not escaped, the character that follows it, so the values can be
// read back from the key.
func fill[S any](text string, pieces []piece[S], after string) Func[S] {
	return func(s S) (string, error) {
		var b strings.Builder
		for _, p := range pieces {
			d, err := derive(p.key, s)
			if err != nil {
				return "", err
			}
			b.WriteString(p.before)
			b.WriteString(p.escape.Replace(d.value))
		}
		if notesOf(s) != nil {
			return result(s, allParts(text))
		}
		b.WriteString(after)
		return result(s, allParts(b.String()))
	}
}

// escapeBefore returns the escaper for a value that is followed by text.
func escapeBefore(text string) *strings.Replacer {
	_, size := utf8.DecodeRuneInString(text)
	next := text[:size]
	if strings.Contains(separator+nameEnd, next) { // also if there is none
		return escaper
	}
	return strings.NewReplacer(slices.Concat(escapes, []string{next, `\` + next})...)
}

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
				return nil, p.fail(open, `no text that ends with ":" or "=" before the first value, `+
					`which could then be that of another key; begin such as "order:"`)
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
