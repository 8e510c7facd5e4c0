package keyfunc

import (
	"net/url"
	"strconv"
)

// Cookie takes a cookie, with %xx and + unescaped: gin's Context.Cookie unescapes
// and net/http's Request.Cookie does not, so two spellings that are one value to
// either have one key. Names are case-sensitive. The part is named after the cookie:
// "cookie.session=e7f1".
//
// It fails with [ErrMissing] when the cookie is absent or empty, with
// [ErrAmbiguous] when it is given more than once, and with [ErrMalformed] when it
// has a bad escape. It panics when name cannot be the name of a cookie.
func Cookie(name string) Func[Request] {
	if !isToken(name) {
		panic(`keyfunc: Cookie needs the name of a cookie, such as Cookie("session"), not ` + strconv.Quote(name))
	}
	part := "cookie " + strconv.Quote(name)
	return namedPart("cookie."+name, part, func(r Request) (string, error) {
		cookies := r.HTTP().CookiesNamed(name)
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
