package conformance_test

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock/v5"
)

var echo5Framework = framework{name: "echo v5", adapter: "echolock", hasErrors: true, statusOf: echolock.StatusOf, reasonOf: echolock.ReasonOf, partOf: echolock.PartOf,
	strict: echolock.Strict, failOpen: echolock.FailOpen, status: echolock.Status, locker: echolock.Locker, bufferBody: echolock.BufferBody,
	with:      func(l *core.Locker, opts ...core.Option) { echolock.With(l, opts...) },
	onRefused: func(f refusing) core.Option { return echolock.OnRefused(echo5Refused(f)) },
	attempt:   echolock.Attempt, ownKey: echolock.IdempotencyKey, past: unwrapped,
	httpError:    func(status int, text string) error { return echo.NewHTTPError(status, text) },
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
	make := maker[echo.MiddlewareFunc, echolock.Config]{
		echolock.ByParam, echolock.ByHeader, echolock.ByQuery, echolock.ByTemplate, echolock.By, echolock.Idempotent, echolock.ByAll, echolock.New,
	}
	if common := g.with; common != nil {
		make = makerOf(echolock.With(common.locker, common.options...))
	}
	return make.middleware(g, echo5Config)
}

func echo5Config(c config) echolock.Config {
	cfg := echolock.Config{
		Locker: c.locker, Key: c.key, Keys: c.keys, Idempotent: (*echolock.Idempotency)(c.idempotent), Options: c.options,
		FailOpen: c.failOpen, Status: c.status, Param: c.param, BufferBody: c.bufferBody, Strict: c.strict,
	}
	if skip := c.skip; skip != nil {
		cfg.Skip = func(c *echo.Context) bool { return skip(c.Request()) }
	}
	if shared := c.shared; shared != nil {
		cfg.Shared = func(c *echo.Context) bool { return shared(c.Request()) }
	}
	if c.safe {
		cfg.Shared = echolock.SafeMethods
	}
	if permits := c.permits; permits != nil {
		cfg.Permits = func(c *echo.Context) int { return permits(c.Request()) }
	}
	if weight := c.weight; weight != nil {
		cfg.Weight = func(c *echo.Context) int { return weight(c.Request()) }
	}
	if refused := c.onRefused; refused != nil {
		cfg.OnRefused = echo5Refused(refused)
	}
	return cfg
}
