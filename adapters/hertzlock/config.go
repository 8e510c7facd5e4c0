package hertzlock

import (
	"context"

	"github.com/cloudwego/hertz/pkg/app"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Config is the long form of the By functions.
type Config struct {
	// Locker takes the locks. nil means that of [With], or else [core.Default], looked up for each
	// request; with none set the request is refused with 500.
	Locker *core.Locker
	// Key derives the key of a request. One of Key, Param and Keys is required.
	Key keyfunc.Func[keyfunc.Request]
	// Param is the path parameter to lock by, as [ByParam] does.
	Param string
	// Keys, in place of Key and Param, derives several keys: the request needs the locks of
	// all of them, as [ByAll] has it.
	Keys keyfunc.Set[keyfunc.Request]
	// Options are for each lock. Unless they, or the Locker's, say otherwise,
	// a request waits up to 3 s, though not for a dedup window, and up to 256 requests wait for one key in a
	// process.
	Options []core.Option
	// Shared says which requests share the lock: they run together, and the others have the lock
	// alone; see [core.Shared].
	Shared func(*app.RequestContext) bool
	// Permits says how many requests may hold the lock when one is admitted; see [core.Permits]. A
	// request for which it returns less than 1, or more than 10,000, is refused with 500.
	Permits func(*app.RequestContext) int
	// Weight says how many of the permits a request takes, in place of one; see [core.Weight]. A
	// request for which it returns less than 1, or more than there are, is refused with 500.
	Weight func(*app.RequestContext) int
	// Skip lets requests pass without a lock when it returns true.
	Skip func(*app.RequestContext) bool
	// OnRefused answers in place of the problem body. It begins with the status and Retry-After set, so that it need only write
	// a body; see StatusOf, ReasonOf and PartOf of package httplock. The text of err may be shown; its cause, behind Unwrap,
	// is for the server. The chain is aborted already, and c.Errors has err.
	OnRefused func(ctx context.Context, c *app.RequestContext, err error)
}

// ByParam locks by a path parameter, on exactly the routes that declare it. The key is "orderID=42": the name is part of it,
// the route is not, so that routes with the same parameter exclude one another. A route without the parameter passes, with a
// warning in the log, if another route behind the guard declares it, and the guard has served a request for that one; else it
// is refused with 500. A route that declares it twice, or in another spelling (letter case, "_" or "-" more or less), is refused
// with 500. It panics when no parameter can have that name or an option is bad.
func ByParam(name string, opts ...core.Option) app.HandlerFunc {
	return withDefault.ByParam(name, opts...)
}

// ByHeader locks by a header field; a request without it, or with it twice, is
// refused with 400. The key is "X-User-Id=42". It panics when the name is empty
// or an option bad.
func ByHeader(name string, opts ...core.Option) app.HandlerFunc {
	return withDefault.ByHeader(name, opts...)
}

// ByQuery locks by a query parameter; a request without it, or with it twice, is
// refused with 400. The key is "id=42". It panics when the name is empty or an
// option bad.
func ByQuery(name string, opts ...core.Option) app.HandlerFunc {
	return withDefault.ByQuery(name, opts...)
}

// ByTemplate locks by a template, such as
// "order:{param.orderID}:user:{header.X-User-ID}". It panics when the template or
// an option is bad.
func ByTemplate(t string, opts ...core.Option) app.HandlerFunc {
	return withDefault.ByTemplate(t, opts...)
}

// By locks by any key. It panics when key is nil or an option bad.
func By(key keyfunc.Func[keyfunc.Request], opts ...core.Option) app.HandlerFunc {
	return withDefault.By(key, opts...)
}

// ByAll locks by all of several keys: the request runs when it has the locks of each, as
// [core.Locker.LockAll] takes them. It panics when keys is nil or an option bad.
func ByAll(keys keyfunc.Set[keyfunc.Request], opts ...core.Option) app.HandlerFunc {
	return withDefault.ByAll(keys, opts...)
}

// New returns middleware for the configuration. It panics unless there is exactly one of Key, Param and Keys, when an
// option is bad, and when Shared or Permits are combined with each other, with [core.KeepFor], or with an option
// that says the same, or Weight is without permits.
func New(cfg Config) app.HandlerFunc { return withDefault.New(cfg) }
