package keyfunc

import (
	"strings"
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
// It may begin with the type, which whoever writes the program chooses.
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
// that is not escaped, the character that follows it, so the values can be told
// from the key.
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
			return tell(s, allParts(text))
		}
		b.WriteString(after)
		return tell(s, allParts(b.String()))
	}
}

// escapeBefore returns the escaper for a value that is followed by text.
func escapeBefore(text string) *strings.Replacer {
	_, size := utf8.DecodeRuneInString(text)
	next := text[:size]
	if strings.Contains(separator+nameEnd, next) { // also if there is none
		return escaper
	}
	return strings.NewReplacer(`\`, `\\`, separator, `\`+separator, nameEnd, `\`+nameEnd, next, `\`+next)
}
