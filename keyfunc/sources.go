package keyfunc

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
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
	part := partOf("path parameter", name)
	undeclared := &partError{part: part, kind: ErrNotSetUp, why: "the route does not declare it"}
	take := namedPart(name, part, func(r Request) (string, error) {
		value, declared := r.Param(name)
		switch {
		case !declared:
			return "", undeclared
		case value == "":
			return "", &partError{part: part, kind: ErrMissing}
		case traceOf(r) != nil && traceOf(r).takes == anySpelling:
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
	if traced, ok := r.(tracedRequest); ok {
		r = traced.Request
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

// Query takes a parameter of the URL's query. The part has its name: "id=42".
//
// It fails with [ErrMissing] when the parameter is absent or empty, with
// [ErrAmbiguous] when it is given more than once, or a name that some binder takes for
// its name: that differs in letter case, brackets, dots, "_" or "-" only. It fails with [ErrMalformed] when any of the query does
// not parse (a semicolon, a bad escape): net/http drops such a part silently, others
// do not. It panics when name is empty.
//
// The handler must read the query too, by URL.Query or what its framework makes
// of it: [net/http.Request.FormValue] prefers a parameter in the body.
func Query(name string) Func[Request] {
	if name == "" {
		panic(`keyfunc: Query needs a parameter name, such as Query("id")`)
	}
	part := partOf("query parameter", name)
	return namedPart(name, part, func(r Request) (string, error) {
		query, err := url.ParseQuery(r.HTTP().URL.RawQuery)
		if err != nil {
			return "", &partError{part: part, kind: ErrMalformed, why: "the query does not parse", cause: err}
		}
		for other := range query {
			if err := part.isGivenAs(name, other); err != nil {
				return "", err
			}
		}
		return single(part, query[name])
	})
}

// single returns the only value there is.
func single(of part, values []string) (string, error) {
	switch {
	case len(values) > 1:
		return "", &partError{part: of, kind: ErrRepeated}
	case len(values) == 0 || values[0] == "":
		return "", &partError{part: of, kind: ErrMissing}
	}
	return values[0], nil
}

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
	part := partOf("header", name)
	return namedPart(name, part, func(r Request) (string, error) {
		if name == "Host" {
			return single(part, []string{r.HTTP().Host})
		}
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

// Cookie takes a cookie, with %xx and + unescaped: gin's Context.Cookie unescapes
// and net/http's Request.Cookie does not, so two spellings that are one value to
// either have one key. The part is named after the cookie:
// "cookie.session=e7f1".
//
// It fails with [ErrMissing] when the cookie is absent or empty, with
// [ErrAmbiguous] when it is given more than once, or beside a name that some binder takes for its name,
// see [Query], or in a form that net/http drops and other servers keep, such as with a letter outside of
// ASCII in the value, and with [ErrMalformed] when it has a bad escape. It panics when name cannot be the name of a cookie.
func Cookie(name string) Func[Request] {
	if !isToken(name) {
		panic(`keyfunc: Cookie needs the name of a cookie, such as Cookie("session"), not ` + strconv.Quote(name))
	}
	part := partOf("cookie", name)
	return namedPart("cookie."+name, part, func(r Request) (string, error) {
		cookies := r.HTTP().CookiesNamed(name)
		given, exactly, err := part.givenCookies(r.HTTP().Header["Cookie"], name)
		switch {
		case err != nil:
			return "", err
		case given > 1:
			return "", &partError{part: part, kind: ErrRepeated}
		case given != len(cookies) || !exactly:
			return "", &partError{part: part, kind: ErrAmbiguous, why: "net/http drops it, others may not"}
		}
		values := make([]string, len(cookies))
		for i, cookie := range cookies {
			values[i] = cookie.Value
		}
		value, err := single(part, values)
		if err != nil {
			return "", err
		}
		value, err = url.QueryUnescape(value)
		if err != nil {
			return "", &partError{part: part, kind: ErrMalformed, why: "bad escape", cause: err}
		}
		return value, nil
	})
}

// givenCookies counts the cookies of that name as the client has sent them, whatever their values. exactly is false when
// there is anything around the name that only some servers take off. It fails when there is a name that is the same to somebody.
func (p part) givenCookies(fields []string, name string) (given int, exactly bool, err error) {
	exactly = true
	for _, field := range fields {
		for pair := range strings.SplitSeq(field, ";") {
			its, _, _ := strings.Cut(pair, "=")
			bare := strings.TrimFunc(its, func(r rune) bool { return r <= ' ' || r == 0x7f || unicode.IsSpace(r) })
			if err := p.isGivenAs(name, bare); err != nil {
				return 0, false, err
			}
			if bare == name {
				given++
				exactly = exactly && strings.TrimLeft(its, " ") == name
			}
		}
	}
	return given, exactly, nil
}

// RemoteIP takes the IP address of the direct peer, from RemoteAddr. The forms of
// an address have one key: ::ffff:192.0.2.1 is 192.0.2.1, and an IPv6 zone, whose
// name differs from host to host, is dropped. The part is named "remoteIP".
//
// It never looks at X-Forwarded-For or the like, which any client can send. Behind
// a proxy the peer is the proxy, and all clients would share its key: have a
// middleware that knows your proxies store the client's address, and use [Value].
//
// It fails with [ErrMissing] when RemoteAddr is empty and with [ErrMalformed] when it
// is not an IP address with a port, as with a Unix socket, or where a middleware has
// put a header's value there.
func RemoteIP() Func[Request] {
	part := part{"remote address", "remoteIP"}
	return namedPart("remoteIP", part, func(r Request) (string, error) {
		address := r.HTTP().RemoteAddr
		if address == "" {
			return "", &partError{part: part, kind: ErrMissing}
		}
		peer, err := netip.ParseAddrPort(address)
		if err != nil {
			return "", &partError{part: part, kind: ErrMalformed, why: "not an IP address with a port", cause: err}
		}
		return peer.Addr().Unmap().WithZone("").String(), nil
	})
}

// TaskType takes the type of a task. The part is named "taskType".
//
// It fails with [ErrMissing] when the type is empty.
func TaskType() Func[Task] {
	part := part{"task type", "taskType"}
	return namedPart("taskType", part, func(t Task) (string, error) {
		return single(part, []string{t.Type()})
	})
}

// Const is the same key for everything. Within [Join] it names what the other
// parts identify; alone it lets one thing at a time run, of all. It is one part
// without a name: colons, equals signs and backslashes in s are escaped.
//
// It never fails. It panics when s is empty.
func Const[S any](s string) Func[S] {
	if s == "" {
		panic(`keyfunc: Const needs a text, such as Const[keyfunc.Request]("order")`)
	}
	d := onePart("", s)
	return func(s S) (string, error) { return result(s, d) }
}
