package keyfunc

import "strings"

// The names that are the same to somebody. A client that gives both would have one of them locked, and the other one handled.
//
//   - letter case: encoding/json, goccy/go-json and jsoniter in bodies; echo's Bind in queries; fiber's in queries, forms and cookies
//   - "[" and "]": fiber strips them anywhere in a name ("id[]", "i[]d"), and has "order[id]" for "order.id"; go-zero's httpx.Parse
//     and Kratos strip "[]"
//   - "_": Kratos, grpc-gateway and protojson take a field by the name in the proto file, "file_name", and by that in JSON, "fileName"
//   - "-": mappings by convention, as of "file-name" to FileName
//
// Beside them jsoniter has a rule of its own, see jsoniterHash.
var signsInNames = strings.NewReplacer("[", "", "]", "", ".", "", "_", "", "-", "")

// isGivenAs fails when some binder takes another name, which a client has given, for that of the part.
func (p part) isGivenAs(name, other string) error {
	switch {
	case name == other:
		return nil
	case sameLetters(name, other):
		return &partError{part: p, kind: ErrLetterCase}
	case sameLetters(signsInNames.Replace(name), signsInNames.Replace(other)):
		why := "a name beside it is the same to some binders: it differs in brackets, dots, _ or - only"
		return &partError{part: p, kind: ErrAmbiguous, why: why}
	}
	return nil
}

// sameLetters reports whether two names differ in letter case only. encoding/json folds as EqualFold does; others, which gin
// can be built with, go by the lower case.
func sameLetters(a, b string) bool {
	//lint:ignore SA6005 the two folds differ: "ſ" and "s" by one, "İ" and "i̇" by the other
	return strings.EqualFold(a, b) || strings.ToLower(a) == strings.ToLower(b)
}
