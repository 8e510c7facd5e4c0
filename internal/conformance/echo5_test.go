package conformance_test

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/latchkey-go/latchkey/echolock/v5"
)

var echo5Framework = framework{name: "echo v5", adapter: "echolock", hasErrors: true, statusOf: echolock.StatusOf, reasonOf: echolock.ReasonOf,
	strict: echolock.Strict, locker: echolock.Locker, bufferBody: echolock.BufferBody, attempt: echolock.Attempt, ownKey: echolock.IdempotencyKey, past: unwrapped, httpError: func(status int, text string) error { return echo.NewHTTPError(status, text) },
	setOnRefused: func(f refusing) { echolock.SetOnRefused(echo5Refused(f)) }, build: func(routes ...route) http.Handler {
		e := echo.New()
		check := echolock.RouteCheck(e)
		e.Logger = slog.Default()
		for _, r := range routes {
			var chain []echo.MiddlewareFunc
			if r.around != nil {
				chain = append(chain, func(next echo.HandlerFunc) echo.HandlerFunc {
					return func(c *echo.Context) (err error) {
						r.around(func() { err = next(c) }, c.Request)
						return err
					}
				})
			}
			if r.failed != nil {
				chain = append(chain, func(next echo.HandlerFunc) echo.HandlerFunc {
					return func(c *echo.Context) error {
						err := next(c)
						if err != nil {
							r.failed(err)
						}
						return err
					}
				})
			}
			for _, name := range r.outside {
				chain = append(chain, echo5Companion(name))
			}
			for _, g := range r.guards {
				chain = append(chain, echo5Guard(g))
			}
			for _, name := range r.inside {
				chain = append(chain, echo5Companion(name))
			}
			pattern := strings.NewReplacer("{path...}", "*", "{", ":", "}", "").Replace(r.pattern)
			handler := func(c *echo.Context) error { return r.run(c.Response(), c.Request()) }
			if r.method == anyMethod {
				e.Any(pattern, handler, chain...)
			} else {
				e.Add(r.method, pattern, handler, chain...)
			}
		}
		return checkedServer{e, func() (report, error) { return reportOf(check()) }}
	}}

func echo5Companion(name companion) echo.MiddlewareFunc {
	if name == unguarded {
		return echolock.Unguarded
	}
	switch name {
	case gzipping:
		return middleware.Gzip()
	case recovering:
		return middleware.Recover()
	case identifying:
		return middleware.RequestID()
	case logging:
		return middleware.RequestLogger()
	case authenticating:
		return func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				c.Set("userID", "u7")
				return next(c)
			}
		}
	}
	panic("no such companion: " + name)
}

func echo5Refused(refused refusing) func(c *echo.Context, err error) error {
	if refused == nil {
		return nil
	}
	return func(c *echo.Context, err error) error {
		refused(c.Response(), c.Request(), err)
		return nil
	}
}

func echo5Guard(g guarding) echo.MiddlewareFunc {
	if g.onRefused != nil {
		g.options = append(g.options, echolock.OnRefused(echo5Refused(g.onRefused)))
	}
	switch {
	case g.config != nil:
		cfg := echolock.Config{
			Locker: g.config.locker, Key: g.config.key, Keys: g.config.keys, Idempotent: (*echolock.Idempotency)(g.config.idempotent), Options: g.config.options,
			FailOpen: g.config.failOpen, Status: g.config.status, Param: g.config.param, BufferBody: g.config.bufferBody, Strict: g.config.strict,
		}
		if skip := g.config.skip; skip != nil {
			cfg.Skip = func(c *echo.Context) bool { return skip(c.Request()) }
		}
		if shared := g.config.shared; shared != nil {
			cfg.Shared = func(c *echo.Context) bool { return shared(c.Request()) }
		}
		if g.config.safe {
			cfg.Shared = echolock.SafeMethods
		}
		if permits := g.config.permits; permits != nil {
			cfg.Permits = func(c *echo.Context) int { return permits(c.Request()) }
		}
		if weight := g.config.weight; weight != nil {
			cfg.Weight = func(c *echo.Context) int { return weight(c.Request()) }
		}
		if refused := g.config.onRefused; refused != nil {
			cfg.OnRefused = echo5Refused(refused)
		}
		return echolock.New(cfg)
	case g.template != "":
		return echolock.ByTemplate(g.template, g.options...)
	case g.key != nil:
		return echolock.By(g.key, g.options...)
	case g.scope != nil:
		return echolock.Idempotent(g.scope, g.options...)
	case g.keys != nil:
		return echolock.ByAll(g.keys, g.options...)
	case g.header != "":
		return echolock.ByHeader(g.header, g.options...)
	case g.query != "":
		return echolock.ByQuery(g.query, g.options...)
	default:
		return echolock.ByParam(g.param, g.options...)
	}
}
