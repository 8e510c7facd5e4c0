package echolock

import (
	"context"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// middleware is not inlined, so that RouteCheck knows what it has made.
//
//go:noinline
func middleware(common guard.Common[onRefusedFunc], cfg Config, own guard.Config) echo.MiddlewareFunc {
	g, answerer := guard.New("echolock", common, own, &onRefused, cfg.OnRefused)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c == probed {
				probe.Found(g)
				return nil
			}
			if cfg.Skip != nil && cfg.Skip(c) {
				return next(c)
			}
			var result error
			r := &request{c: c}
			refusal := g.Serve(r, func(ctx context.Context, outcome *guard.Outcome) {
				result = serve(next, r, ctx, outcome)
			})
			if refusal == nil && r.misled && !c.Response().Committed {
				refusal = g.Misplaced(r)
			}
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
func serve(next echo.HandlerFunc, r *request, ctx context.Context, outcome *guard.Outcome) (err error) {
	c := r.c
	outer, response := c.Request(), c.Response() // middleware inside may put another response in its place
	received := guard.ReceivedIn(ctx)
	inner := guard.Inner(outer, ctx)
	if r.unmatched {
		// In e.Pre the router is asked later. It goes by the request that the server
		// has given, so that what middleware inside makes of this one matches nothing.
		inner.URL = new(url.URL)
		*inner.URL = *outer.URL
	}
	c.SetRequest(inner)
	compare := func(*echo.Response) {}
	if outcome.Matters(ctx) {
		compare = watch(response, outcome)
	}
	defer func() {
		if !received.IsOurs() {
			outcome.Unseen()
			return
		}
		compare(c.Response())
		r.misled = r.unmatched && r.leads(outer)
		c.SetRequest(received.Outer(outer, c.Request()))

		if response.Status >= http.StatusBadRequest || err != nil {
			outcome.Fail()
		}
	}()
	err = next(c)
	if err != nil && outcome.IsRecorded() && !response.Committed && received.IsOurs() {
		c.Error(err) // now, or the answer would come after it is stored
	}
	return err
}

// answerBy has somebody else answer a refusal. The answer is never a success.
func answerBy(answer func(echo.Context, error) error, c echo.Context, refusal *guard.Refusal) error {
	response := c.Response()
	refused := refusal.Writer(response.Writer)
	response.Writer, response.Status = refused, refusal.Status
	defer func() { response.Writer = refused.ResponseWriter }()
	err := answer(c, refusal)
	if err == nil && !response.Committed {
		response.WriteHeader(refusal.Status)
	}
	return err
}

// httpError is the refusal as echo's error. echo v4 recognises it by a type
// assertion, so it is not wrapped. Error handlers of an application find a line of
// text in it; echo's own prefers an HTTPError that is inside, and finds the body.
func httpError(c echo.Context, r *guard.Refusal) *echo.HTTPError {
	r.RetryHeader(c.Response().Header())
	body := r.Body()
	c.Response().Before(func() { body.Header(c.Response().Header()) })
	return &echo.HTTPError{
		Code:     r.Status,
		Message:  body.String(),
		Internal: &echo.HTTPError{Code: r.Status, Message: body, Internal: r},
	}
}

// request shows an echo request to the guard.
type request struct {
	c         echo.Context
	unmatched bool // Route has found that the router matches nothing
	misled    bool // until middleware inside has changed the path or the method
}

func (r *request) HTTP() *http.Request { return r.c.Request() }

func (r *request) Param(name string) (value string, declared bool) {
	for i, n := range r.c.ParamNames() {
		if n == name && i < len(r.c.ParamValues()) {
			return r.c.ParamValues()[i], true
		}
	}
	return "", false
}

func (r *request) ResponseHeader() http.Header { return r.c.Response().Header() }

var serveHTTP = guard.FunctionName((*echo.Echo).ServeHTTP)

func (r *request) ServedBy() string { return serveHTTP }

// Decoded is false: echo takes the parameters from the path as it was sent, escapes and all.
func (r *request) Decoded(string) bool { return false }

func (r *request) Params() []string { return r.c.ParamNames() }

// Declared has those of all routes: echo does not tell which of them are behind a guard.
func (r *request) Declared(*guard.Guard) (names []string, known bool) {
	for _, router := range routersOf(r.c.Echo()) {
		for _, route := range router.Routes() {
			names = append(names, guard.ColonParams(route.Path, ":*")...)
		}
	}
	return names, true
}

func (r *request) Value(key any) any {
	if name, ok := key.(string); ok {
		if v := r.c.Get(name); v != nil {
			return v
		}
	}
	return r.c.Request().Context().Value(key)
}
