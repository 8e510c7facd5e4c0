package keyfunc

// Key returns the key that a part of that name and value has: Key("orderID", 42) is
// "orderID=42", the very key of Param("orderID"), of the wrappers' ByParam, and of a JSON or
// Payload field of that name. It is for code that locks by itself what requests and jobs are
// guarded by: core's Lock, Do and Wrap.
//
// Give the value as it is in the request, or in the canonical form that the wrapper uses (see
// [Int], [UUID]): Key makes none. An empty one has no key: the result is empty, which core
// refuses as an invalid key. It panics when name is empty.
func Key[V ~string | ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](name string, value V) string {
	if name == "" {
		panic(`keyfunc: Key needs the name of a part, such as Key("orderID", 42)`)
	}
	text, err := text("", value)
	if err != nil {
		panic(err) // a text or an integer always has one
	}
	if text == "" {
		return ""
	}
	return onePart(name, text).key
}
