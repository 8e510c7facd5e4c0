package keyfunc

import (
	"strconv"
	"strings"
)

// Param takes a path parameter, as the router found it. The part has its name:
// "orderID=42".
//
// It fails with [ErrMissing] when the parameter is empty, and with [ErrNotSetUp] when
// the matched route does not declare it. It fails with [ErrPath] where one thing has
// several spellings: when the value has escapes, as "%61nn" has, unless the router decodes
// them all (see [Request]); when a segment in it is "." or ".."; when it spans segments, as
// a wildcard's does, and one of them is empty, the last one too. [Path] and [Unescaped] say how such
// a value is to be read. It panics when name is empty.
func Param(name string) Func[Request] {
	if name == "" {
		panic(`keyfunc: Param needs a parameter name, such as Param("orderID")`)
	}
	part := "path parameter " + strconv.Quote(name)
	undeclared := &partError{part: part, kind: ErrNotSetUp, why: "the route does not declare it"}
	take := namedPart(name, part, func(r Request) (string, error) {
		value, declared := r.Param(name)
		switch {
		case !declared:
			return "", undeclared
		case value == "":
			return "", &partError{part: part, kind: ErrMissing}
		case isTold(r):
			return value, nil
		case hasEscape(value) && !isDecoded(r, name):
			return "", &partError{part: part, kind: ErrPath, why: "it has an escape; Unescaped or Path says how to read it"}
		case dots(value) > 0:
			return "", &partError{part: part, kind: ErrPath, why: "it has a dot segment; Path says how to read it"}
		case hasEmpty(r, value):
			return "", &partError{part: part, kind: ErrPath, why: "it has an empty segment; Path says how to read it"}
		}
		return value, nil
	})
	return func(r Request) (string, error) {
		if notesOf(r) != nil { // of a route, which has parameters without values
			if _, declared := r.Param(name); !declared {
				return "", undeclared
			}
		}
		return take(r)
	}
}

// isDecoded reports whether the router has decoded a parameter.
func isDecoded(r Request, name string) bool {
	if heard, ok := r.(heardRequest); ok {
		r = heard.Request
	}
	d, ok := r.(interface{ Decoded(param string) bool })
	return ok && d.Decoded(name)
}

// hasEmpty reports whether a value that spans segments has an empty one. gin's wildcards
// begin with the slash before them.
func hasEmpty(r Request, value string) bool {
	if !strings.Contains(value, "/") {
		return false
	}
	return strings.Contains(value, "//") || strings.HasSuffix(value, "/") ||
		value[0] == '/' && strings.Contains(r.HTTP().URL.Path, "//")
}
