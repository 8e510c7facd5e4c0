package keyfunc

// Named gives a part its name, or another one: Named("orderID", f) is "orderID=" and
// the value of f. So a route that is guarded by
//
//	By(keyfunc.Named("orderID", keyfunc.Param("id")))
//
// excludes one that is guarded by ByParam("orderID"). Functions that are written by
// hand have no name, so what they return needs one, or a [Const] before it. Several
// parts become the value of one.
//
// Different names never share a key: the name ends at the first "=" that no
// backslash stands before.
//
// It fails as f does. It panics when name is empty or f is nil.
func Named[S any](name string, f Func[S]) Func[S] {
	if name == "" {
		panic(`keyfunc: Named needs a name, such as Named("orderID", keyfunc.Param("id"))`)
	}
	mustFunc("Named", f)
	return func(s S) (string, error) {
		d, err := derive(f, s)
		if err != nil {
			return "", err
		}
		d.key, d.name = onePart(name, d.value).key, name
		return tell(s, d)
	}
}
