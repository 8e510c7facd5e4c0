package keyfunc

import (
	"net/http"
	"net/url"
	"strings"
)

// Path brings the spellings of a path to one form: without escapes, empty segments and dot
// segments, nor a slash at either end. "/a//b/", "a/./b", "a/x/../b", "a%2Fb" and "%61/b" are
// "a/b". It is for a wildcard, "{path...}" or "*path", where the handler, or whoever it hands
// the path on to, cleans it likewise. A part keeps its name.
//
// Letter case stays as it is, and counts, and so does a backslash that is next to no dot
// segment: a file system may see that otherwise.
//
// It fails as f does, with [ErrPath] when nothing is left of the path, when it leads out of
// where it begins ("../b"), when it has an escape within an escape ("%2561") or a dot segment
// with a semicolon ("..;x") or a backslash (`..\x`), and with [ErrMalformed] when f has
// several parts: each needs a Path of its own. It panics when f is nil.
func Path[S any](f Func[S]) Func[S] { return told("Path", f, cleaned) }

// Unescaped decodes the escapes of a value once, as [url.PathUnescape] does: "%61nn" is
// "ann". It is for a path parameter that the handler decodes, where the router does not:
// chi, echo, and gin with UseRawPath and without UnescapePathValues. Of the segments it says
// nothing: "a//b" and "a/b" are two values. A part keeps its name.
//
// It fails as f does, and with [ErrMalformed] when the value does not decode, or f has several
// parts: each needs an Unescaped of its own. It panics when f is nil.
func Unescaped[S any](f Func[S]) Func[S] {
	return told("Unescaped", f, func(value string) (string, error) {
		decoded, err := url.PathUnescape(value)
		if err != nil {
			return "", &partError{part: "Unescaped", kind: ErrMalformed, why: "bad escape", cause: err}
		}
		return decoded, nil
	})
}

func cleaned(value string) (string, error) {
	fail := func(why string) (string, error) { return "", &partError{part: "Path", kind: ErrPath, why: why} }
	path := unescaped(value)
	if hasEscape(path) {
		return fail("an escape within an escape")
	}
	var segments []string
	for s := range strings.SplitSeq(path, "/") {
		switch {
		case s == "", s == ".":
		case s == ".." && len(segments) == 0:
			return fail("it leads out of where it begins")
		case s == "..":
			segments = segments[:len(segments)-1]
		case dots(s) > 0:
			return fail("a dot segment with a semicolon or a backslash")
		default:
			segments = append(segments, s)
		}
	}
	if len(segments) == 0 {
		return fail("nothing is left of it")
	}
	return strings.Join(segments, "/"), nil
}

// ValidatePath is for those who write adapters: it fails with [ErrPath] when the path of r has
// a dot segment, escaped or not, that is in none of params, which are the values of the path
// parameters that make the key. Whoever cleans the path later would be led past them:
// "/orders/42/%2e%2e/43/pay" is about order 43 to a server behind this one.
func ValidatePath(r *http.Request, params ...string) error {
	left := dots(r.URL.Path)
	for _, value := range params {
		if !strings.Contains(r.URL.Path, value) { // the router did not decode it
			value = unescaped(value)
		}
		left -= dots(value)
	}
	if left > 0 {
		return &partError{part: "path", kind: ErrPath, why: "it has a dot segment"}
	}
	return nil
}

// unescaped is s itself when it does not decode: a percent sign in it is one.
func unescaped(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}

// hasEscape reports whether s has a percent sign with two hexadecimal digits.
func hasEscape(s string) bool {
	for i := range len(s) - 2 {
		if s[i] == '%' && isHex(s[i+1]) && isHex(s[i+2]) {
			return true
		}
	}
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// dots counts the segments of a path that lead elsewhere. Some servers take a backslash for a
// slash, and drop what stands behind a semicolon before they look.
func dots(path string) (n int) {
	for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			n++
		}
	}
	return n
}
