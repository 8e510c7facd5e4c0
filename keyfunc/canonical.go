package keyfunc

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
)

// maxDigits is more than any integer type holds. Conversions of longer numbers
// are a known way to keep a server busy.
const maxDigits = 64

// Int brings decimal integers of any size to one form: "042" and "+42" are "42",
// "-0" is "0". A part keeps its name: Int(Param("orderID")) has the keys of
// Param("orderID").
//
// The handler must read decimal digits, as strconv.Atoi and strconv.ParseInt with base
// 10 do. A reader of octal takes 052 for 42, while Int says 52: [fmt.Sscan],
// strconv.ParseInt(s, 0, 64), and big.Int's SetString with base 0.
//
// Integers beyond 64 bits are keys of their own, as they are to a handler that has
// big ones; strconv refuses them. One that lets them wrap round, which takes care to
// write, would take 2^64+42 for 42.
//
// It fails as f does, and with [ErrMalformed] when the value of f is anything but at
// most 64 ASCII digits after an optional sign: a space, an underscore, hexadecimal,
// a fraction. It panics when f is nil.
func Int[S any](f Func[S]) Func[S] {
	return canonical("Int", f, func(value string) (string, error) {
		n, ok := canonicalInt(value)
		if !ok {
			return "", &partError{part: part{text: "Int"}, kind: ErrMalformed, why: "not a decimal integer of at most 64 digits"}
		}
		return n, nil
	})
}

func canonicalInt(s string) (string, bool) {
	digits, negative := strings.CutPrefix(s, "-")
	if !negative {
		digits = strings.TrimPrefix(s, "+")
	}
	if digits == "" || len(digits) > maxDigits || strings.TrimLeft(digits, "0123456789") != "" {
		return "", false
	}
	digits = strings.TrimLeft(digits, "0")
	switch {
	case digits == "":
		return "0", true
	case negative:
		return "-" + digits, true
	}
	return digits, true
}

// UUID brings the spellings of a UUID to one form, lower-case with hyphens. It takes
// that form in any case, without hyphens, in braces, or after "urn:uuid:". A part
// keeps its name.
//
// It fails as f does, and with [ErrMalformed] when the value of f is anything else. It
// panics when f is nil.
func UUID[S any](f Func[S]) Func[S] {
	return canonical("UUID", f, func(value string) (string, error) {
		id, err := uuid.Parse(value)
		if err != nil || !hasBraces(value) {
			return "", &partError{part: part{text: "UUID"}, kind: ErrMalformed, why: "not a UUID"}
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

// Hash replaces the value of a part by its SHA-256, 64 hexadecimal digits, and keeps
// its name: for values that are longer than a lock's name may be, or that should not
// be read in Redis and in logs. What can be guessed, such as an e-mail address, can
// be guessed from its hash too. Around several parts it is the hash of all, with
// their names in it, and has no name.
//
// It fails as f does. It panics when f is nil.
func Hash[S any](f Func[S]) Func[S] {
	return canonical("Hash", f, func(value string) (string, error) {
		sum := sha256.Sum256([]byte(value))
		return hex.EncodeToString(sum[:]), nil
	})
}

// Path brings the spellings of a path to one form: without escapes, empty segments and dot
// segments, nor a slash at either end. "/a//b/", "a/./b", "a/x/../b", "a%2Fb" and "%61/b" are
// "a/b". It is for a wildcard, "{path...}" or "*path", where the handler, or the server
// to which it passes the path on, cleans it in the same way. A part keeps its name.
//
// Letter case stays as it is, and counts, and so does a backslash that is next to no dot
// segment: a file system may see that otherwise.
//
// It fails as f does, with [ErrPath] when nothing is left of the path, when it leads out of
// where it begins ("../b"), when it has an escape within an escape ("%2561") or a dot segment
// with a semicolon ("..;x") or a backslash (`..\x`), and with [ErrMalformed] when f has
// several parts: each needs a Path of its own. It panics when f is nil.
func Path[S any](f Func[S]) Func[S] { return ofPath("Path", f, cleaned) }

// Unescaped decodes the escapes of a value once, as [url.PathUnescape] does: "%61nn" is
// "ann". It is for a path parameter that the handler decodes, where the router does not:
// chi, echo, and gin with UseRawPath and without UnescapePathValues. Of the segments it says
// nothing: "a//b" and "a/b" are two values. A part keeps its name.
//
// It fails as f does, and with [ErrMalformed] when the value does not decode, or f has several
// parts: each needs an Unescaped of its own. It panics when f is nil.
func Unescaped[S any](f Func[S]) Func[S] {
	return ofPath("Unescaped", f, func(value string) (string, error) {
		decoded, err := url.PathUnescape(value)
		if err != nil {
			return "", &partError{part: part{text: "Unescaped"}, kind: ErrMalformed, why: "bad escape", cause: err}
		}
		return decoded, nil
	})
}

func cleaned(value string) (string, error) {
	fail := func(why string) (string, error) {
		return "", &partError{part: part{text: "Path"}, kind: ErrPath, why: why}
	}
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

// ValidatePath is for adapters: it fails with [ErrPath] when the path of r has
// a dot segment, escaped or not, that is in none of params, which are the values of the path
// parameters that make the key. A server that cleans the path later would be led past them:
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
		return &partError{part: part{"path", "path"}, kind: ErrPath, why: "it has a dot segment"}
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
	if !strings.Contains(path, ".") { // as mostly
		return 0
	}
	for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			n++
		}
	}
	return n
}

// canonical is f with its value in another form, and its name as it was. A Path or Unescaped
// around it sees that form only, so it does not say how to read what f takes.
func canonical[S any](constructor string, f Func[S], form func(value string) (string, error)) Func[S] {
	return convert(constructor, f, oneSpelling, func(d derived) (string, error) { return form(d.value) })
}

// ofPath is canonical for a form to which every spelling of a path parameter is brought.
func ofPath[S any](constructor string, f Func[S], form func(value string) (string, error)) Func[S] {
	return convert(constructor, f, anySpelling, func(d derived) (string, error) {
		if d.several {
			return "", &partError{part: part{text: constructor}, kind: ErrMalformed, why: "it is around several parts: put one around each"}
		}
		return form(d.value)
	})
}

func convert[S any](constructor string, f Func[S], takes spelling, form func(derived) (string, error)) Func[S] {
	mustFunc(constructor, f)
	return func(s S) (string, error) {
		d, err := deriveFrom(f, s, takes)
		switch {
		case err != nil:
			return "", err
		case notesOf(s) != nil: // there is no value
			return result(s, d)
		}
		value, err := form(d)
		switch {
		case err != nil && d.source.text != "":
			return "", inside(d.source, err)
		case err != nil:
			return "", err
		}
		return result(s, onePart(d.name, value).from(d.source))
	}
}
