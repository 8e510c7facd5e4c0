// Package keyfunc derives the key of a lock from an HTTP request or a job.
//
// A [Func] takes one part, such as a path parameter; others combine parts or
// bring them to one form:
//
//	key := keyfunc.Join(
//		keyfunc.Const[keyfunc.Request]("cart"),
//		keyfunc.Value("userID"), // what the authentication middleware stored
//		keyfunc.Int(keyfunc.Query("item")),
//	)
//
// [Template] says the same in a line of text, without the canonical forms.
//
// # Keys that cannot be slipped past
//
// Two different inputs never share a key by accident: [Join], [Scope] and
// [Template] escape what they put together. No Func of this package returns an
// empty key: a part that is absent or empty is [ErrMissing], and the work does
// not run, unless [Optional] says that it may run without a lock.
//
// A part that the handler might read differently is refused with
// [ErrAmbiguous] or [ErrMalformed]: a query parameter, header field or cookie
// that is given twice, a JSON field that is there twice or in two letter cases.
// What remains for the caller to see to:
//
//   - The handler must read the value where the key is taken from. In particular
//     [net/http.Request.FormValue] and the Bind functions of frameworks mix body,
//     query and path.
//   - A value that has several spellings needs a canonical form: [Int] for
//     numbers, [UUID] for UUIDs. Otherwise 42 and 042 are two keys for one order.
//   - A key that is to be one user's own needs what authentication found, by
//     [Value]. A client may put any name into a header.
//
// # Errors
//
// Errors begin with "keyfunc: ", name the part and never show a value that came from
// the client. Their cause, which might, is there for [errors.Is] and [errors.As], but
// not printed.
package keyfunc
