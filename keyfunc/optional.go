package keyfunc

import "errors"

// Optional says that without this key the work may run without a lock: it turns
// [ErrMissing] into [ErrSkip]. Around a [Join] it does so when any of the parts is
// missing.
//
// It fails as f does in every other case: a part that is ambiguous, malformed or
// too large is refused still. It panics when f is nil.
//
// Whoever sends the request decides then whether it is locked. Do not use it
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
