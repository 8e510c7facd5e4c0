package keyfunc

import (
	"errors"
	"strconv"
)

// Join puts parts together with colons: "cart:item=42". A part is a name and a value
// with an equals sign between them, or the text of a [Const] or of a function that is
// written by hand. Colons, equals signs and backslashes inside are escaped with a
// backslash, so that two different lists never share a key: "a:b", "c" is `a\:b:c` and
// "a", "b:c" is `a:b\:c`. The parts of a Join in a Join are parts of the whole.
//
// Give it a [Const], or a part with a name, first. A first part that is written by
// hand is a namespace of what it returns, which may be that of another key.
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
		var whole derived
		var skip error
		for i, f := range parts {
			d, err := derive(f, s)
			switch {
			case errors.Is(err, ErrSkip):
				skip = err // unless a later part is refused: no request skips by that
			case err != nil:
				return "", inside("part "+strconv.Itoa(i+1), err)
			case i == 0:
				whole = d
			default:
				whole = allParts(whole.key + separator + d.key)
			}
		}
		if skip != nil {
			return "", skip
		}
		return tell(s, whole)
	}
}
