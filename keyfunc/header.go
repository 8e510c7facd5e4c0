package keyfunc

import (
	"net/http"
	"strconv"
	"strings"
)

// Header takes a header field. The case of the name does not matter; "Host" is
// the host that the request is for, which net/http keeps apart from the header.
// A list in one field ("a, b") is one value, as it is for the handler. The part has
// the canonical name: "X-User-Id=7".
//
// It fails with [ErrMissing] when the field is absent or empty and with
// [ErrAmbiguous] when there is more than one of that name. It panics when name
// cannot be the name of a header field.
//
// A client may write anything into a header: see [Value] for one that
// authentication must have checked, and [Hash] for one that is long or secret.
func Header(name string) Func[Request] {
	if !isToken(name) {
		panic(`keyfunc: Header needs the name of a header field, such as Header("Idempotency-Key"), not ` + strconv.Quote(name))
	}
	name = http.CanonicalHeaderKey(name)
	part := "header " + strconv.Quote(name)
	if name == "Host" {
		return namedPart(name, part, func(r Request) (string, error) {
			return single(part, []string{r.HTTP().Host})
		})
	}
	return namedPart(name, part, func(r Request) (string, error) {
		return single(part, r.HTTP().Header[name])
	})
}

// isToken reports whether s is a token of RFC 9110, as names of header fields and
// cookies are. Another name would never be found.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
