// Package keyfunc derives the key of a lock from an HTTP request or a job.
//
// A [Func] takes one part, such as a path parameter, with its name: the key of
// Param("orderID") is "orderID=42". Others combine parts or bring them to one form:
//
//	key := keyfunc.Join(
//		keyfunc.Const[keyfunc.Request]("cart"),
//		keyfunc.Value("userID"), // what the authentication middleware stored
//		keyfunc.Int(keyfunc.Query("item")),
//	) // cart:value.userID=7:item=42
//
// [Template] says the same in a line of text, without the canonical forms. A [Set], such as
// [All], derives several keys, for work that needs the locks of all of them.
//
// # Keys that nobody can evade
//
// A key is a list of parts. Each part is a name and a value, or a text alone; separators
// inside of them are escaped. A key reads in one way only, so two different inputs never
// share a key by accident. No value that a client sends is the key of another Func, as long
// as the first part has a name or is a [Const], a [Scope] or the text of a [Template]. The
// same name is the same thing, whether it comes from the path, the query or a body. Keys
// from elsewhere, such as those of [core.Locker.Do] and of a Func that is written by hand
// and stands alone, are used as they are: give them a prefix of their own. No Func of this
// package returns an empty key: for a part that is absent or empty it fails with
// [ErrMissing], and the work does not run, unless [Optional] says that it may run without a
// lock.
//
// A part that the handler might read differently is refused with
// [ErrAmbiguous] or [ErrMalformed]: a query parameter, header field or cookie
// that is given twice, a query parameter or JSON field in another letter case, a body
// that some framework does not read as JSON, a path parameter with escapes or dot segments.
// The caller has to take care of the rest:
//
//   - The handler must read the value where the key is taken from. In particular
//     [net/http.Request.FormValue] and the Bind functions of frameworks mix body,
//     query and path: a body field of the same name beats the path, unless the path
//     is bound last.
//   - A value that has several spellings needs a canonical form: [Int] for
//     numbers, [UUID] for UUIDs, [Path] for paths. Otherwise 42 and 042 are two keys for
//     one order.
//   - A key that is to be one user's own needs what authentication found, by
//     [Value]. A client may put any name into a header.
//
// # Errors
//
// Errors begin with "keyfunc: ", name the part and never show a value that came from
// the client. Their cause, which might, is there for [errors.Is] and [errors.As], but
// not printed.
//
// [core.Locker.Do]: https://pkg.go.dev/github.com/latchkey-go/latchkey/core#Locker.Do
package keyfunc
