package keyfunc

import (
	"strconv"
	"strings"
)

// JSONOption changes what [JSON] takes.
type JSONOption func(*jsonReader)

// MaxBytes bounds bodies by n bytes instead of 1 MiB. So much of each request may be
// kept in memory. It panics when n is less than 1.
func MaxBytes(n int64) JSONOption {
	if n < 1 {
		panic(`keyfunc: MaxBytes needs a limit of at least 1 byte, such as MaxBytes(64<<10)`)
	}
	return func(b *jsonReader) { b.limit = n }
}

// MediaType has bodies of another media type read as JSON too, such as
// "application/vnd.api+json", in exactly these letters; "" is a body without
// Content-Type.
//
// Only for handlers that read JSON whatever the type says: encoding/json, gin's
// ShouldBindJSON. One that chooses by the type, as gin's ShouldBind and echo's Bind
// do, knows none but "application/json". It would take the value from a form, XML or
// the query, while another one is locked.
//
// It panics when t is neither empty nor a media type without parameters.
func MediaType(t string) JSONOption {
	kind, subtype, _ := strings.Cut(t, "/")
	if t != "" && (!isToken(kind) || !isToken(subtype)) {
		panic(`keyfunc: MediaType needs a media type without parameters, such as MediaType("application/vnd.api+json"), not ` + strconv.Quote(t))
	}
	return func(b *jsonReader) { b.types = append(b.types, t) }
}
