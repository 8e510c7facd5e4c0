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
// It fails with the error of the first part that fails, and says which it was. If
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
				return "", inside(nth(i), err)
			case i == 0:
				whole = d
			default:
				whole = allParts(whole.key + separator + d.key)
			}
		}
		if skip != nil {
			return "", skip
		}
		return result(s, whole)
	}
}

// nth says which of several parts an error is about.
func nth(i int) part { return part{text: "part " + strconv.Itoa(i+1)} }

// Compared is f for a text that locks nothing, and is compared with that of the same request when it comes again: an amount
// like 10.5 is no reason to refuse it. A [JSON] in it takes numbers of all kinds, as they are written.
//
// It fails as f does. It panics when f is nil.
func Compared(f Func[Request]) Func[Request] {
	mustFunc("Compared", f)
	return func(r Request) (string, error) {
		d, err := deriveFrom(f, r, anyNumber)
		if err != nil {
			return "", err
		}
		return result(r, d)
	}
}

// Scope puts a key into a namespace: Scope("order", f) is "order:" and the key of
// f, as Join(Const("order"), f) is. Scopes of different names never share a key,
// whatever f returns.
//
// It fails as f does. It panics when name is empty or f is nil.
func Scope[S any](name string, f Func[S]) Func[S] {
	if name == "" {
		panic(`keyfunc: Scope needs a name, such as Scope("order", keyfunc.Param("orderID"))`)
	}
	mustFunc("Scope", f)
	before := onePart("", name).key + separator
	return func(s S) (string, error) {
		d, err := derive(f, s)
		if err != nil {
			return "", err
		}
		return result(s, allParts(before+d.key))
	}
}

// Named gives a part its name, or another one: Named("orderID", f) is "orderID=" and
// the value of f. So a route that is guarded by
//
//	By(keyfunc.Named("orderID", keyfunc.Param("id")))
//
// excludes one that is guarded by ByParam("orderID"). Functions that are written by
// hand have no name, so what they return needs one, or a [Const] before it. Several
// parts become the value of one.
//
// Different names never share a key: the name ends at the first "=" that no
// backslash stands before.
//
// It fails as f does. It panics when name is empty or f is nil.
func Named[S any](name string, f Func[S]) Func[S] {
	if name == "" {
		panic(`keyfunc: Named needs a name, such as Named("orderID", keyfunc.Param("id"))`)
	}
	mustFunc("Named", f)
	own := partOf("key part", name) // for one that has no name of its own
	return func(s S) (string, error) {
		d, err := derive(f, s)
		switch {
		case err != nil && PartName(err) == "" && !errors.Is(err, ErrSkip):
			return "", inside(own, err)
		case err != nil:
			return "", err
		case d.source.name == "":
			d.source = own
			notesOf(s).name(name)
		}
		d.key, d.name = onePart(name, d.value).key, name
		return result(s, d)
	}
}

// Optional says that without this key the work may run without a lock: it turns
// [ErrMissing] into [ErrSkip]. Around a [Join] it does so when any of the parts is
// missing.
//
// It fails as f does in every other case: a part that is ambiguous, malformed or
// too large is refused still. It panics when f is nil.
//
// The sender of the request then decides whether it is locked. Do not use it
// where the handler finds the value elsewhere, or has a default for it.
func Optional[S any](f Func[S]) Func[S] {
	mustFunc("Optional", f)
	return func(s S) (string, error) {
		key, err := f(s)
		if n := notesOf(s); n != nil {
			n.optional = true
			if errors.Is(err, ErrNotSetUp) {
				return "", errors.Join(ErrSkip, err)
			}
			return key, err
		}
		if errors.Is(err, ErrMissing) || err == nil && key == "" {
			return "", ErrSkip
		}
		return key, err
	}
}
