package keyfunc

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
)

// Value takes what earlier middleware stored under key: gin's and echo's c.Get,
// the request's context. It is the way to a key per user, and behind proxies to
// the client's address, as your own trusted middleware found it.
//
// The part is named after the key: "value.userID=7", also where the key is "userID"
// of a string type of your own, so that no [Query] or [Header] of that name reaches the
// keys of what authentication found. A key that is an integer, or a struct of texts and
// numbers, or points to such, is named by its type and that, any other by its type alone,
// as Go prints it, without the path of the package: keys of equal types of two packages
// that have one name are one. For a name that other programs share, use [Named].
//
// Strings, integers and byte slices of any type are taken as they are, other types
// by their MarshalText method, or their String method if they are not pointers.
// The text must differ for any two values; that of a String method made for logs may not.
//
// It fails with [ErrNotSetUp] when nothing is stored, with [ErrMissing] when that is a
// nil pointer or an empty text, and with [ErrMalformed] when it is of any other type, such
// as a float, a map or a pointer to a struct: store the ID rather than the user. It
// panics when key is nil or cannot be compared.
func Value(key any) Func[Request] {
	if key == nil || !reflect.TypeOf(key).Comparable() {
		panic(`keyfunc: Value needs a key that can be compared, such as Value("userID"), and that middleware has stored under`)
	}
	part := part{text: fmt.Sprintf("value of type %T", key)}
	if name, ok := key.(string); ok {
		part = partOf("value", name)
	} else if v := reflect.ValueOf(key); v.Kind() == reflect.String {
		part.name = v.String()
	}
	return namedPart("value."+keyName(key), part, func(r Request) (string, error) {
		stored := r.Value(key)
		if stored == nil {
			return "", &partError{part: part, kind: ErrNotSetUp, why: "nothing is stored under it: does the middleware that stores it run before?"}
		}
		value, err := text(part, stored)
		if err == nil && value == "" {
			return "", &partError{part: part, kind: ErrMissing}
		}
		return value, err
	})
}

// keyName is the same in every process.
func keyName(key any) string {
	switch v := reflect.ValueOf(key); {
	case v.Kind() == reflect.String:
		return v.String()
	case v.CanInt():
		return fmt.Sprintf("%T(%d)", key, v.Int())
	case v.CanUint():
		return fmt.Sprintf("%T(%d)", key, v.Uint())
	case v.Kind() == reflect.Pointer && !v.IsNil() && isPlain(v.Elem()):
		return fmt.Sprintf("%T%v", key, v.Elem())
	case v.Kind() == reflect.Struct && isPlain(v):
		return fmt.Sprintf("%T%v", key, v)
	default:
		return fmt.Sprintf("%T", key)
	}
}

// isPlain reports whether v distinguishes keys of its type, and Go prints it the same in
// every process: it is a text, a number or a struct of these that is not empty.
func isPlain(v reflect.Value) bool {
	switch {
	case v.Kind() == reflect.String, v.CanInt(), v.CanUint(), v.Kind() == reflect.Bool:
		return true
	case v.Kind() != reflect.Struct:
		return false
	}
	for i := range v.NumField() {
		if !isPlain(v.Field(i)) {
			return false
		}
	}
	return v.NumField() > 0
}

// text returns the text by which v differs from others of its type.
func text(of part, v any) (string, error) {
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.Invalid:
		return "", nil
	// The value itself rather than its String method: an enumeration's may call
	// all values that it does not know by one name.
	case reflect.String:
		return rv.String(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(rv.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(rv.Uint(), 10), nil
	case reflect.Pointer:
		if rv.IsNil() {
			return "", nil
		}
		if m, ok := v.(encoding.TextMarshaler); ok {
			return marshalText(of, m)
		}
	case reflect.Struct, reflect.Array, reflect.Slice:
		if m, ok := v.(encoding.TextMarshaler); ok {
			return marshalText(of, m)
		}
		if s, ok := v.(fmt.Stringer); ok {
			return s.String(), nil
		}
		if rv.Kind() == reflect.Slice && rv.Type().Elem().Kind() == reflect.Uint8 {
			return string(rv.Bytes()), nil
		}
	}
	why := fmt.Sprintf("a %T cannot be part of a key; store a string, an integer or a UUID", v)
	return "", &partError{part: of, kind: ErrMalformed, why: why}
}

func marshalText(of part, m encoding.TextMarshaler) (string, error) {
	b, err := m.MarshalText()
	if err != nil {
		return "", &partError{part: of, kind: ErrMalformed, why: fmt.Sprintf("MarshalText of the %T failed", m), cause: err}
	}
	return string(b), nil
}
