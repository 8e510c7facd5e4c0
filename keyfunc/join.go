package keyfunc

import (
	"errors"
	"strconv"
	"strings"
)

const separator = ":"

// escaper lets no value contain a separator that is not escaped.
var escaper = strings.NewReplacer(`\`, `\\`, `:`, `\:`)

// Join puts parts together with colons. Colons and backslashes inside a part are
// escaped with a backslash, so that two different lists never share a key:
// "a:b", "c" is `a\:b:c` and "a", "b:c" is `a:b\:c`.
//
// It fails with the error of the first part that fails, and tells which it was. If
// none fails but one returns [ErrSkip], so does Join: an [Optional] part that is
// missing means no lock at all, not a key without that part. It panics when there
// are no parts or one is nil.
func Join[S any](parts ...Func[S]) Func[S] {
	if len(parts) == 0 {
		panic(`keyfunc: Join needs at least one part, such as Join(keyfunc.Param("orderID"), keyfunc.Query("item"))`)
	}
	for _, f := range parts {
		mustFunc("Join", f)
	}
	parts = append([]Func[S](nil), parts...) // the caller may go on using the slice
	return func(s S) (string, error) {
		keys := make([]string, len(parts))
		skip := false
		for i, f := range parts {
			key, err := apply(f, s)
			switch {
			case errors.Is(err, ErrSkip):
				skip = true // unless a later part is refused: no request skips by that
			case err != nil:
				return "", inside("part "+strconv.Itoa(i+1), err)
			}
			keys[i] = escaper.Replace(key)
		}
		if skip {
			return "", ErrSkip
		}
		return strings.Join(keys, separator), nil
	}
}
