package keyfunc

import (
	"net/url"
	"strconv"
)

// Query takes a parameter of the URL's query. The part has its name: "id=42".
//
// It fails with [ErrMissing] when the parameter is absent or empty, with
// [ErrAmbiguous] when it is given more than once, or its name in another letter case,
// which echo's Bind takes for it, and with [ErrMalformed] when any of the query does
// not parse (a semicolon, a bad escape): net/http drops such a part silently, others
// do not. It panics when name is empty.
//
// The handler must read the query too, by URL.Query or what its framework makes
// of it: [net/http.Request.FormValue] prefers a parameter in the body.
func Query(name string) Func[Request] {
	if name == "" {
		panic(`keyfunc: Query needs a parameter name, such as Query("id")`)
	}
	part := "query parameter " + strconv.Quote(name)
	return namedPart(name, part, func(r Request) (string, error) {
		query, err := url.ParseQuery(r.HTTP().URL.RawQuery)
		if err != nil {
			return "", &partError{part: part, kind: ErrMalformed, why: "the query does not parse", cause: err}
		}
		for other := range query {
			if other != name && sameLetters(other, name) {
				return "", &partError{part: part, kind: ErrLetterCase}
			}
		}
		return single(part, query[name])
	})
}

// single returns the only value there is.
func single(part string, values []string) (string, error) {
	switch {
	case len(values) > 1:
		return "", &partError{part: part, kind: ErrRepeated}
	case len(values) == 0 || values[0] == "":
		return "", &partError{part: part, kind: ErrMissing}
	}
	return values[0], nil
}
