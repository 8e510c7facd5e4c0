package guard

import (
	"cmp"
	"strings"
)

// wildcard is the name of a path parameter that has none.
const wildcard = "*"

// ColonParams returns the names of the path parameters of a pattern in which they begin with one
// of some signs, such as ":", and end before the next "/". `\:` is no sign. One without a
// name is "*".
func ColonParams(pattern, signs string) (names []string) {
	pattern = strings.ReplaceAll(pattern, `\:`, "")
	for {
		begin := strings.IndexAny(pattern, signs)
		if begin < 0 {
			return names
		}
		name, rest, _ := strings.Cut(pattern[begin+1:], "/")
		names = append(names, cmp.Or(name, wildcard))
		pattern = rest
	}
}
