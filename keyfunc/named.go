package keyfunc

import "strings"

// nameEnd ends a name in Named; inside a name it is escaped.
const nameEnd = "="

var nameEscaper = strings.NewReplacer(`\`, `\\`, nameEnd, `\`+nameEnd)

// Named puts the name of a part before its value, as the wrappers' ByParam,
// ByHeader, ByQuery and ByPayload do: Named("orderID", f) is "orderID=" and the key
// of f. So a route that is guarded by
//
//	By(keyfunc.Named("orderID", keyfunc.Int(keyfunc.Param("orderID"))))
//
// excludes one that is guarded by ByParam("orderID"). Different names never share a
// key: the name ends at the first "=" that no backslash stands before.
//
// It fails as f does. It panics when name is empty or f is nil.
func Named[S any](name string, f Func[S]) Func[S] {
	if name == "" {
		panic(`keyfunc: Named needs a name, such as Named("orderID", keyfunc.Param("orderID"))`)
	}
	mustFunc("Named", f)
	return prepend(nameEscaper.Replace(name)+nameEnd, f)
}
