package keyfunc

// Scope puts a key into a namespace: Scope("order", f) is "order:" and the key of
// f. Scopes of different names never share a key, whatever f returns: colons and
// backslashes in the name are escaped, so it ends at the first colon that is not.
// The key of f follows unchanged.
//
// It fails as f does. It panics when name is empty or f is nil.
func Scope[S any](name string, f Func[S]) Func[S] {
	if name == "" {
		panic(`keyfunc: Scope needs a name, such as Scope("order", keyfunc.Param("orderID"))`)
	}
	mustFunc("Scope", f)
	return prepend(escaper.Replace(name)+separator, f)
}

// prepend puts a text before the key of f.
func prepend[S any](prefix string, f Func[S]) Func[S] {
	return func(s S) (string, error) {
		key, err := apply(f, s)
		if err != nil {
			return "", err
		}
		return prefix + key, nil
	}
}
