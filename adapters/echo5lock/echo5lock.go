package echo5lock

import (
	"cmp"
	"context"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// middleware is not inlined, so that RouteCheck knows what it has made.
//
//go:noinline
func middleware(common guard.Common[onRefusedFunc], cfg Config, own guard.Config) echo.MiddlewareFunc {
	g, answerer := guard.New("echo5lock", common, own, &onRefused, cfg.OnRefused)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		automatic := guard.IsCalledBy(groupUse)
		return func(c *echo.Context) error {
			if c == probed {
				probe.Found(g)
				return nil
			}
			if cfg.Skip != nil && cfg.Skip(c) {
				return next(c)
			}
			var result error
			var r guard.Request = request{c}
			if !automatic && c.RouteInfo().Method == echo.RouteNotFound {
				r = fallback{r}
			}
			refusal := g.Serve(r, func(ctx context.Context, outcome *guard.Outcome) {
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

// Declared has those of all routes: echo does not tell which of them are behind a guard.
func (r request) Declared(*guard.Guard) (names []string, known bool) {
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

func (r request) IsFallback(*guard.Guard) bool { return false }

// groupUse registers routes for 404 of a group with middleware, so that its middleware runs.
var groupUse = guard.FunctionName((*echo.Group).Use)

// fallback is a request for a handler that was registered for 404.
type fallback struct{ guard.Request }

func (r fallback) IsFallback(g *guard.Guard) bool {
	return !isForAll(r.Request.(request).c.Echo(), g)
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
