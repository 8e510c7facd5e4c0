package echolock

import (
	"cmp"
	"context"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
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
	// a request waits up to 3 s, and up to 256 requests wait for one key in a
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
	// OnRefused answers in place of the error. It begins with the status and Retry-After
	// set, so that it need only write a body, or return an error of your own; see
	// [StatusOf] and [ReasonOf]. The text of err may be shown; its cause, behind Unwrap, is
	// for the server. It is not called when the client has left. See also [SetOnRefused].
	OnRefused func(c *echo.Context, err error) error
	// FailOpen runs the handler WITHOUT a lock while Redis is unavailable. Only
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
// with the same parameter exclude one another. Routes without the parameter pass,
// with a warning in the log; where no route at all declares it, they are refused with 500
// and a line in the log that lists the declared names. A route that declares it twice, or in another
// spelling (letter case, "_" or "-" more or less), is refused with 500, and so are requests in
// e.Pre, where the route is not known yet. It panics when no parameter can have that
// name or an option is bad.
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

// middleware is not inlined, so that RouteCheck knows what it has made.
//
//go:noinline
func middleware(common guard.Common[onRefusedFunc], cfg Config, own guard.Config) echo.MiddlewareFunc {
	g, answerer := guard.New("echolock", common, own, &onRefused, cfg.OnRefused)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			if c == probed {
				probe.Found(g)
				return nil
			}
			if cfg.Skip != nil && cfg.Skip(c) {
				return next(c)
			}
			var result error
			refusal := g.Serve(request{c}, func(ctx context.Context, outcome *guard.Outcome) {
				result = serve(next, c, ctx, outcome)
			})
			switch {
			case refusal == nil:
				return result
			case refusal.IsFixed():
				refusal.Write(c.Response())
				return nil
			}
			if answer := answerer(); answer != nil {
				return answerBy(answer, c, refusal)
			}
			return httpError(c, refusal)
		}
	}
}

// serve runs the handler under ctx. Afterwards the request has its own context
// back, for the middleware outside: the lock's is cancelled by then.
func serve(next echo.HandlerFunc, c *echo.Context, ctx context.Context, outcome *guard.Outcome) error {
	outer, received := c.Request(), guard.ReceivedIn(ctx)
	c.SetRequest(guard.Inner(outer, ctx))
	defer func() {
		if !received.IsOurs() {
			outcome.Unseen()
			return
		}
		c.SetRequest(received.Outer(outer, c.Request()))
	}()
	if outcome.Matters(ctx) {
		// Not by echo's own response, which has the status too late when middleware outside,
		// such as Gzip, has put another one in front of it.
		outside := c.Response()
		c.SetResponse(guard.Watch(outside, outcome, func() guard.Known { return knownOf(outside) }))
		defer func() {
			if received.IsOurs() {
				c.SetResponse(outside)
			}
		}()
	}
	err := next(c)
	if err != nil && outcome.IsRecorded() && received.IsOurs() && !knownOf(c.Response()).Begun {
		c.Echo().HTTPErrorHandler(c, err) // now, or the answer would come after it is stored
	}
	if knownOf(c.Response()).Status >= http.StatusBadRequest || err != nil {
		outcome.Fail()
	}
	return err
}

// knownOf returns what echo's response knows of the answer. Its status is sent when the body begins.
func knownOf(w http.ResponseWriter) guard.Known {
	response, err := echo.UnwrapResponse(w)
	if err != nil {
		return guard.Known{Status: http.StatusOK}
	}
	return guard.Known{Begun: response.Committed, Status: cmp.Or(response.Status, http.StatusOK), Size: response.Size}
}

// refusalError is an *echo.HTTPError that echo's own error handler answers with
// the refusal's body, because it is a json.Marshaler with a status.
type refusalError struct {
	*guard.Body
	err *echo.HTTPError
	why error
}

func (e *refusalError) StatusCode() int { return e.err.Code }
func (e *refusalError) Error() string   { return e.err.Error() }
func (e *refusalError) Unwrap() []error { return []error{e.err, e.why} }

// answerBy has somebody else answer a refusal. The answer is never a success.
func answerBy(answer func(*echo.Context, error) error, c *echo.Context, refusal *guard.Refusal) error {
	refused := refusal.Writer(c.Response())
	c.SetResponse(refused)
	defer c.SetResponse(refused.ResponseWriter)
	if response, err := echo.UnwrapResponse(refused); err == nil {
		response.Status = refusal.Status
	}
	err := answer(c, refusal)
	if err == nil {
		refused.Begin()
	}
	return err
}

func httpError(c *echo.Context, r *guard.Refusal) error {
	r.RetryHeader(c.Response().Header())
	body := r.Body()
	if response, err := echo.UnwrapResponse(c.Response()); err == nil {
		response.Before(func() { body.Header(response.Header()) })
	}
	return &refusalError{Body: body, err: echo.NewHTTPError(r.Status, body.String()), why: r}
}

// request shows an echo request to the guard.
type request struct{ c *echo.Context }

func (r request) HTTP() *http.Request { return r.c.Request() }

func (r request) Param(name string) (value string, declared bool) {
	return r.c.PathValues().Get(name)
}

func (r request) ResponseHeader() http.Header { return r.c.Response().Header() }

var serveHTTP = guard.FunctionName((*echo.Echo).ServeHTTP)

func (r request) ServedBy() string { return serveHTTP }

// Decoded is false: echo takes the parameters from the path as it was sent, escapes and all.
func (r request) Decoded(string) bool { return false }

func (r request) Params() []string {
	values := r.c.PathValues()
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.Name
	}
	return names
}

func (r request) Declared() (names []string, known bool) {
	for _, route := range r.c.Echo().Router().Routes() {
		names = append(names, guard.ColonParams(route.Path, ":*")...)
	}
	return names, true
}

func (r request) Value(key any) any {
	if name, ok := key.(string); ok {
		if v := r.c.Get(name); v != nil {
			return v
		}
	}
	return r.c.Request().Context().Value(key)
}

// Route is unknown in e.Pre, where echo has no route yet: its routes for 404 and 405
// have a name, but no path.
func (r request) Route() (pattern string, known bool) {
	route := r.c.RouteInfo()
	if route.Method == echo.RouteNotFound { // groups with middleware have such routes
		return "", true
	}
	return route.Path, route.Path != "" || route.Name != ""
}
