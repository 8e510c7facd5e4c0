package keyfunc

import "github.com/google/uuid"

// UUID brings the spellings of a UUID to one form, lower-case with hyphens. It takes
// that form in any case, without hyphens, in braces, or after "urn:uuid:". A part
// keeps its name.
//
// It fails as f does, and with [ErrMalformed] when the value of f is anything else. It
// panics when f is nil.
func UUID[S any](f Func[S]) Func[S] {
	mustFunc("UUID", f)
	return canonical(f, func(value string) (string, error) {
		id, err := uuid.Parse(value)
		if err != nil || !hasBraces(value) {
			return "", &partError{part: "UUID", kind: ErrMalformed, why: "not a UUID"}
		}
		return id.String(), nil
	})
}

// hasBraces reports whether the braces are where a UUID of this length has them:
// uuid.Parse takes any two bytes for them.
func hasBraces(s string) bool {
	const inBraces = len("{00000000-0000-0000-0000-000000000000}")
	return len(s) != inBraces || s[0] == '{' && s[inBraces-1] == '}'
}
