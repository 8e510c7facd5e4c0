package keyfunc

import "net/http"

// Func derives a key from S, a [Request] or a [Task].
//
// It returns a key that is not empty, or an error that wraps [ErrMissing],
// [ErrAmbiguous], [ErrMalformed] or [ErrTooLarge] when there is no such key, or
// [ErrSkip] when no lock is wanted. Funcs that are written by hand should do the
// same; an empty key of theirs counts as ErrMissing wherever this package calls
// them.
//
// [Join], [Named] and their like call a Func with an S of their own around theirs, so
// that parts can report their names: a Func that is written by hand may call others
// with it, and return their key unchanged, but not ask for its dynamic type.
//
// Middleware calls a Func once when it is given one, with an S that nobody has sent, to
// find out what it reads: see [Describe].
//
// The Funcs of this package are safe for concurrent use, and return at once,
// except those that read a request's body: see [JSON]. Their constructors panic on
// bad arguments, with a sentence that says how to fix it.
type Func[S any] func(S) (string, error)

// Request is what a Func sees of an HTTP request, whatever the framework.
type Request interface {
	// HTTP returns the request. Its Body may be replaced by one that reads the
	// same.
	HTTP() *http.Request
	// Param returns a path parameter, as the handler sees it, and whether the matched
	// route declares it.
	//
	// A Request may also have a method Decoded(param string) bool: whether the router
	// has decoded the escapes in this parameter's value, so that no handler does it. Without
	// it, [Param] does not know that "%61nn" cannot mean "ann", and refuses it.
	Param(name string) (value string, declared bool)
	// Value returns what earlier middleware stored under key, nil if nothing.
	Value(key any) any
}

// Task is what a Func sees of a job. An *asynq.Task is one.
type Task interface {
	// Type returns the name by which the job is routed.
	Type() string
	// Payload returns the job's data, which must not be changed.
	Payload() []byte
}

// mustFunc panics if a constructor was given no function.
func mustFunc[S any](constructor string, f Func[S]) {
	if f == nil {
		panic("keyfunc: " + constructor + ` needs a key function that is not nil, such as keyfunc.Param("orderID")`)
	}
}
