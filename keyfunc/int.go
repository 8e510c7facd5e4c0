package keyfunc

import "strings"

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
	mustFunc("Int", f)
	return canonical(f, func(value string) (string, error) {
		n, ok := canonicalInt(value)
		if !ok {
			return "", &partError{part: "Int", kind: ErrMalformed, why: "not a decimal integer of at most 64 digits"}
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
