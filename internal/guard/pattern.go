package guard

import "strings"

// ColonParams returns the names of the path parameters of a pattern in which they begin with one
// of some signs, such as ":", and end before the next "/". `\:` is no sign.
func ColonParams(pattern, signs string) (names []string) {
	pattern = strings.ReplaceAll(pattern, `\:`, "")
	for {
		begin := strings.IndexAny(pattern, signs)
		if begin < 0 {
			return names
		}
		name, rest, _ := strings.Cut(pattern[begin+1:], "/")
		names = append(names, name)
		pattern = rest
	}
}
