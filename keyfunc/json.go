package keyfunc

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

const defaultBodyLimit = 1 << 20

// JSON takes a field of the request's JSON body. The body stays readable for the
// handler, byte for byte.
//
// The path is made of field names, with dots between them: "order.id". A number is
// an index into an array, "items.0.id", and only that; a field whose name has a dot
// or is a number cannot be reached.
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
//   - [ErrAmbiguous]: a field of the path is there twice, or its name in another
//     letter case: encoding/json decodes both into the same struct field, but not
//     into a map. The Content-Type is not JSON, so that a handler that goes by it
//     might read a form or XML; without Content-Type the body counts as JSON.
//   - [ErrMalformed]: not one valid JSON text in UTF-8 with nothing after it; the
//     value is an object, an array or a number that is not a plain integer (1.0 and
//     1e0 would be other keys than 1); the text is damaged (U+FFFD, half of a
//     surrogate pair); the body has a Content-Encoding, or could not be read. A middleware
//     that decompresses it must remove that field.
//   - [ErrTooLarge]: the body is longer than 1 MiB, or than an [http.MaxBytesReader]
//     around it permits. See [JSONLimit].
//
// JSON blocks until the client has sent the body. It sets the Body of the request that
// HTTP returns, whose other fields stay as they are; several JSON parts may take
// turns with a request, but not read it at the same time. What a failure has left
// unread remains for the handler, an error while reading included. It panics when
// the path is bad.
func JSON(path string) Func[Request] {
	f, err := jsonBody(path, defaultBodyLimit)
	if err != nil {
		panic(`keyfunc: JSON needs a path of field names, such as JSON("order.id"): ` + err.Error())
	}
	return f
}

// JSONLimit is [JSON] for bodies of up to maxBytes. So much of each request may be
// kept in memory. It panics when the path is bad or maxBytes is less than 1.
func JSONLimit(path string, maxBytes int64) Func[Request] {
	if maxBytes < 1 {
		panic(`keyfunc: JSONLimit needs a limit of at least 1 byte, such as JSONLimit("order.id", 64<<10)`)
	}
	f, err := jsonBody(path, maxBytes)
	if err != nil {
		panic(`keyfunc: JSONLimit needs a path of field names, such as JSONLimit("order.id", 64<<10): ` + err.Error())
	}
	return f
}

func jsonBody(path string, limit int64) (Func[Request], error) {
	field, err := parseField("JSON field", path)
	if err != nil {
		return nil, err
	}
	tooLong := "the body is longer than " + strconv.FormatInt(limit, 10) + " bytes"
	return func(req Request) (string, error) {
		r := req.HTTP()
		if r.Body == nil || r.Body == http.NoBody {
			return "", &partError{part: field.part, kind: ErrMissing, why: "no body"}
		}
		// Before anything is read: a client that expects 100 Continue is spared
		// sending what will be refused.
		if err := readableAsJSON(field.part, r.Header); err != nil {
			return "", err
		}
		if r.ContentLength > limit {
			return "", &partError{part: field.part, kind: ErrTooLarge, why: tooLong}
		}
		body, err := peek(r, limit)
		switch {
		case isTooLarge(err):
			return "", &partError{part: field.part, kind: ErrTooLarge, why: tooLong, cause: err}
		case err != nil:
			return "", &partError{part: field.part, kind: ErrMalformed, why: "the body could not be read", cause: err}
		}
		return field.in(body)
	}, nil
}

// readableAsJSON refuses a body that the handler might not read as the JSON text
// that we see. One text can be JSON with one value and a form or XML with another:
// {"id":1,"x":"&id=2&"}.
func readableAsJSON(part string, h http.Header) error {
	for _, encoding := range h["Content-Encoding"] {
		if !strings.EqualFold(encoding, "identity") {
			return &partError{part: part, kind: ErrMalformed, why: "the body has a Content-Encoding"}
		}
	}
	switch types := h["Content-Type"]; {
	case len(types) > 1:
		return &partError{part: part, kind: ErrAmbiguous, why: "Content-Type is given more than once"}
	case len(types) == 1 && !isJSONType(types[0]):
		return &partError{part: part, kind: ErrAmbiguous, why: "the Content-Type is not JSON"}
	}
	return nil
}

func isJSONType(contentType string) bool {
	media, _, _ := mime.ParseMediaType(contentType) // empty on errors, save those of parameters, which nobody heeds
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}
