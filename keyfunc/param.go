package keyfunc

import "strconv"

// Param takes a path parameter, as the router found it. The part has its name:
// "orderID=42".
//
// It fails with [ErrMissing] when the parameter is empty, and with [ErrNotSetUp] when
// the matched route does not declare it. It panics when name is empty.
func Param(name string) Func[Request] {
	if name == "" {
		panic(`keyfunc: Param needs a parameter name, such as Param("orderID")`)
	}
	part := "path parameter " + strconv.Quote(name)
	return namedPart(name, func(r Request) (string, error) {
		value, declared := r.Param(name)
		switch {
		case !declared:
			return "", &partError{part: part, kind: ErrNotSetUp, why: "the route does not declare it"}
		case value == "":
			return "", &partError{part: part, kind: ErrMissing}
		}
		return value, nil
	})
}
