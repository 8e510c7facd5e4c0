package keyfunc

// Const is the same key for everything. Within [Join] it names what the other
// parts identify; alone it lets one thing at a time run, of all. It is one part
// without a name: colons, equals signs and backslashes in s are escaped.
//
// It never fails. It panics when s is empty.
func Const[S any](s string) Func[S] {
	if s == "" {
		panic(`keyfunc: Const needs a text, such as Const[keyfunc.Request]("order")`)
	}
	d := onePart("", s)
	return func(s S) (string, error) { return tell(s, d) }
}
