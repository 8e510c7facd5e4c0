package keyfunc

// Scope puts a key into a namespace: Scope("order", f) is "order:" and the key of
// f, as Join(Const("order"), f) is. Scopes of different names never share a key,
// whatever f returns.
//
// It fails as f does. It panics when name is empty or f is nil.
func Scope[S any](name string, f Func[S]) Func[S] {
	if name == "" {
		panic(`keyfunc: Scope needs a name, such as Scope("order", keyfunc.Param("orderID"))`)
	}
	mustFunc("Scope", f)
	before := onePart("", name).key + separator
	return func(s S) (string, error) {
		d, err := derive(f, s)
		if err != nil {
			return "", err
		}
		return tell(s, allParts(before+d.key))
	}
}
