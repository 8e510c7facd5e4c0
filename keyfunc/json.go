package keyfunc

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const defaultBodyLimit = 1 << 20

// JSON takes a field of the request's JSON body. The body stays readable for the
// handler, byte for byte.
//
// The path is made of field names, with dots between them: "order.id". A number is
// an index into an array, "items.0.id", and only that; a field whose name has a dot
// or is a number cannot be reached. The part has the path as its name: "order.id=42".
//
// A string is taken as it is, without escapes; true and false by these names; an
// integer by its digits, none of them lost, also beyond 2^53. The string "1" and the
// number 1 share a key. A handler that decodes into a float64, or into an any without
// UseNumber, does lose digits and takes two such numbers for one: let it decode into
// an integer or a string. Where it turns a string into a number, use [Int].
//
// JSON sees what encoding/json will show the handler, or fails:
//
//   - [ErrMissing]: no body, no such field, or its value is null or the empty string.
//   - [ErrAmbiguous]: a field of the path is there twice, or beside a name that some
//     decoder takes for its name, though not into a map: that differs in letter case,
//     brackets, dots, "_" or "-" only, or is the same to jsoniter. Or a
//     handler that goes by it might read a form, XML or the query: the
//     Content-Type is not "application/json" in these letters, alone or before a
//     semicolon or space, see [MediaType]; the method is GET; there is no such field,
//     and a query in a method for which echo's Bind reads it (HEAD, DELETE, QUERY).
//   - [ErrMalformed]: not one valid JSON text in UTF-8 with nothing after it; the
//     value is an object, an array or a number that is not a plain integer, from -2^63 to
//     2^63-1 (1.0 and 1e0 would be other keys than 1; goccy/go-json decodes 2^63 into the
//     int64 -2^63, and 2^64+1 into 1); the text is damaged (U+FFFD, half of a surrogate
//     pair); the body has a Content-Encoding, or could not be read. A middleware that
//     decompresses it must remove that field.
//   - [ErrBodyRead]: some of the body is not there any more.
//   - [ErrTooLarge]: the body is longer than 1 MiB, see [MaxBytes], or than an
//     [http.MaxBytesReader] around it permits.
//
// JSON blocks until the client has sent the body. It sets the Body of the request that
// HTTP returns, whose other fields stay as they are; several JSON parts may take
// turns with a request, but not read it at the same time. What a failure has left
// unread remains for the handler, an error while reading included. It panics when
// the path or an option is bad.
func JSON(path string, opts ...JSONOption) Func[Request] {
	f, err := jsonBody(path, opts...)
	if err != nil {
		panic(`keyfunc: JSON needs a path of field names, such as JSON("order.id"): ` + err.Error())
	}
	return f
}

func jsonBody(path string, opts ...JSONOption) (Func[Request], error) {
	field, err := parseField("JSON field", path)
	if err != nil {
		return nil, err
	}
	b := newJSONReader(field, opts)
	return namedPart(path, field.part, func(r Request) (string, error) {
		own := b
		own.anyNumber = traceOf(r) != nil && traceOf(r).takes == anyNumber
		return only(own.read(r.HTTP()))
	}), nil
}

// jsonReader reads a field of a body.
type jsonReader struct {
	field
	limit int64
	types []string // media types that count as JSON; an empty one stands for none
}

func newJSONReader(f field, opts []JSONOption) jsonReader {
	b := jsonReader{field: f, limit: defaultBodyLimit, types: []string{"application/json"}}
	for _, opt := range opts {
		opt(&b)
	}
	return b
}

// read returns the texts of the field in the body of a request.
func (b jsonReader) read(r *http.Request) ([]string, error) {
	if !hasBody(r) && r.URL.RawQuery == "" && !WasRead(r, 0) { // nor anything else that a handler might read
		return nil, b.fail(ErrMissing, "no body")
	}
	// Before anything is read: a client that expects 100 Continue is spared sending
	// what will be refused.
	if err := b.declared(r); err != nil {
		return nil, err
	}
	body, err := readBody(r, b.part, b.limit)
	if err != nil {
		return nil, err
	}
	values, err := b.all(body)
	if err != nil && WasRead(r, len(body)) {
		return nil, b.fail(ErrBodyRead, "put the middleware that reads it inside of the lock, or have it put the body back")
	}
	if errors.Is(err, ErrMissing) && r.URL.RawQuery != "" && bindsQuery(r.Method) {
		return nil, b.fail(ErrAmbiguous, "not in the body, so that the handler might take it from the query")
	}
	return values, err
}

// bindsQuery reports whether echo's Bind looks into the query before the body.
func bindsQuery(method string) bool {
	switch method {
	case http.MethodHead, http.MethodDelete, "QUERY":
		return true
	}
	return false
}

// declared refuses a body that the handler might not read as the JSON text that we
// see. One text can be JSON with one value and a form or XML with another:
// {"id":1,"x":"&id=2&"}.
func (b jsonReader) declared(r *http.Request) error {
	for _, encoding := range r.Header["Content-Encoding"] {
		if !strings.EqualFold(encoding, "identity") {
			return b.fail(ErrMalformed, "the body has a Content-Encoding")
		}
	}
	types := r.Header["Content-Type"]
	switch {
	case r.Method == http.MethodGet: // gin's ShouldBind
		return b.fail(ErrAmbiguous, "the handler might read the query of a GET and not its body")
	case len(types) > 1:
		return b.fail(ErrNotJSON, "Content-Type is given more than once")
	case len(types) == 0 && !b.isJSON(""):
		return b.fail(ErrNotJSON, `no Content-Type; only "application/json" is read as JSON by every handler`)
	case len(types) == 1 && !b.isJSON(types[0]):
		return b.fail(ErrNotJSON, `the Content-Type is not "application/json", which alone is read as JSON by every handler`)
	}
	return nil
}

func (b jsonReader) isJSON(contentType string) bool {
	if end := strings.IndexAny(contentType, "; "); end >= 0 {
		contentType = contentType[:end]
	}
	return slices.Contains(b.types, contentType) // as the frameworks compare it, letter for letter
}

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

// Payload takes a field of a task's JSON payload, by a path as in [JSON], with the
// same rules and errors; the path is the part's name. A payload is in memory already
// and has no limit.
func Payload(path string) Func[Task] {
	f, err := payload(path)
	if err != nil {
		panic(`keyfunc: Payload needs a path of field names, such as Payload("order.id"): ` + err.Error())
	}
	return f
}

func payload(path string) (Func[Task], error) {
	field, err := parseField("payload field", path)
	if err != nil {
		return nil, err
	}
	return namedPart(path, field.part, func(t Task) (string, error) { return only(field.all(t.Payload())) }), nil
}
