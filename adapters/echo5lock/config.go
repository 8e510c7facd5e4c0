// Code generated from ginlock/config.go by internal/architecture. DO NOT EDIT.

package echo5lock

import (
	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Config is the long form of the By functions.
type Config struct {
	// Locker takes the locks. nil means that of [With], or else [core.Default], looked up for each
	// request; with none set the request is refused with 500.
	Locker *core.Locker
	// Key derives the key of a request. One of Key, Param, Keys and Idempotent is required.
	Key keyfunc.Func[keyfunc.Request]
	// Param is the path parameter to lock by, on exactly the routes that declare
	// it, as [ByParam] does.
	Param string
	// Keys, in place of Key and Param, derives several keys: the request needs the locks of
	// all of them, as [ByAll] has it.
	Keys keyfunc.Set[keyfunc.Request]
	// Idempotent, in place of Key, Param and Keys, processes requests once, as the function
	// [Idempotent] does. It cannot be combined with Shared, Permits and FailOpen.
	Idempotent *Idempotency
	// Strict refuses, with 500 and a line in the log, a route that is matched and
	// does not declare Param, so that none passes by mistake. It needs Param.
	Strict bool
	// Options are for each lock. Unless they, or the Locker's, say otherwise,
	// a request waits up to 3 s, though not for a dedup window, and up to 256 requests wait for one key in a
	// process.
	Options []core.Option
	// Shared says which requests share the lock, such as [SafeMethods]: they run together, and
	// the others have the lock alone; see [core.Shared].
	Shared func(*echo.Context) bool
	// Permits says how many requests may hold the lock when one is admitted, such as by the
	// tenant's plan; see [core.Permits]. A request for which it returns less than 1,
	// or more than 10,000, is refused with 500. Where all have the same, use [core.Permits] among
	// the Options.
	Permits func(*echo.Context) int
	// Weight says how many of the permits a request takes, in place of one; see [core.Weight]. A
	// request for which it returns less than 1, or more than there are, is refused with 500.
	Weight func(*echo.Context) int
	// Skip lets requests pass without a lock when it returns true.
	Skip func(*echo.Context) bool
	// OnRefused answers in place of the problem body. It begins with the status and
	// Retry-After set, so that it need only write a body; see [StatusOf] and [ReasonOf]. The
	// text of err may be shown; its cause, behind Unwrap, is for the server. It is not called
	// when the client has left. See also [SetOnRefused].
	// It answers in place of the error that the application's error handler would get, and may return one of its own.
	OnRefused func(c *echo.Context, err error) error
	// FailOpen runs the handler WITHOUT a lock while Redis is unavailable, or overloaded. Only
	// for work that may run twice.
	FailOpen bool
	// Status answers a busy lock; if zero 409, or 429 where no permit is free. Between 400 and 599.
	Status int
	// BufferBody is how many bytes the body of a request may have. The body is read in full
	// before the lock is requested, so that no client waits for the lock, or holds it, while it
	// delays its body; the handler reads it from memory. A longer body is answered with 413, one
	// that cannot be read with 400. If zero, bodies of known length are read in this way up to
	// 64 KiB, and longer ones are left to the handler; if negative, all are.
	BufferBody int64
}

// ByParam locks by a path parameter, on exactly the routes that declare it. The
// key is "orderID=42": the name is part of it, the route is not, so that routes
// with the same parameter exclude one another. A route without the parameter passes,
// with a warning in the log, if another route behind the guard declares it; else it is refused with
// 500 and a line in the log that lists the declared names. A route that declares it twice, or in another
// spelling (letter case, "_" or "-" more or less), is refused with 500. It panics when no parameter can have
// that name or an option is bad.
//
// Any route of the application counts as one behind the guard, until [RouteCheck] has reported which are. Requests are
// refused with 500 in e.Pre, where the route is not known yet, too, and where RouteNotFound has it guard.
func ByParam(name string, opts ...core.Option) echo.MiddlewareFunc {
	return withDefault.ByParam(name, opts...)
}

// ByHeader locks by a header field; a request without it, or with it twice, is
// refused with 400. The key is "X-User-Id=42". It panics when the name is empty
// or an option bad.
func ByHeader(name string, opts ...core.Option) echo.MiddlewareFunc {
	return withDefault.ByHeader(name, opts...)
}

// ByQuery locks by a query parameter; a request without it, or with it twice, is
// refused with 400. The key is "id=42". It panics when the name is empty or an
// option bad.
func ByQuery(name string, opts ...core.Option) echo.MiddlewareFunc {
	return withDefault.ByQuery(name, opts...)
}

// ByTemplate locks by a template, such as
// "order:{param.orderID}:user:{header.X-User-ID}". It panics when the template or
// an option is bad.
func ByTemplate(t string, opts ...core.Option) echo.MiddlewareFunc {
	return withDefault.ByTemplate(t, opts...)
}

// By locks by any key. It panics when key is nil or an option bad.
func By(key keyfunc.Func[keyfunc.Request], opts ...core.Option) echo.MiddlewareFunc {
	return withDefault.By(key, opts...)
}

// ByAll locks by all of several keys: the request runs when it has the locks of each, as
// [core.Locker.LockAll] takes them. It panics when keys is nil or an option bad.
func ByAll(keys keyfunc.Set[keyfunc.Request], opts ...core.Option) echo.MiddlewareFunc {
	return withDefault.ByAll(keys, opts...)
}

// New returns middleware for the configuration. It panics unless there is exactly one of Key, Param,
// Keys and Idempotent, when Strict is set without Param, an option is bad, or Status is no error status,
// and when Shared or Permits are combined with each other, with [core.KeepFor], or with an option
// that says the same, or Weight is without permits.
func New(cfg Config) echo.MiddlewareFunc { return withDefault.New(cfg) }
