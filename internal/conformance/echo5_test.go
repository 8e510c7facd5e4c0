package conformance_test

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/core"
)

var echo5Framework = framework{name: "echo v5", adapter: "echo5lock", hasErrors: true, statusOf: echo5lock.StatusOf, reasonOf: echo5lock.ReasonOf, partOf: echo5lock.PartOf,
	strict: echo5lock.Strict, failOpen: echo5lock.FailOpen, status: echo5lock.Status, locker: echo5lock.Locker, bufferBody: echo5lock.BufferBody,
	with:      func(l *core.Locker, opts ...core.Option) { echo5lock.With(l, opts...) },
	onRefused: func(f refusing) core.Option { return echo5lock.OnRefused(echo5Refused(f)) },
	attempt:   echo5lock.Attempt, ownKey: echo5lock.IdempotencyKey, past: unwrapped,
	httpError:    func(status int, text string) error { return echo.NewHTTPError(status, text) },
	setOnRefused: func(f refusing) { echo5lock.SetOnRefused(echo5Refused(f)) }, build: func(routes ...route) http.Handler {
		e, guardOf := echo.New(), oneEach(echo5Guard)
		check := echo5lock.RouteCheck(e)
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
			for i := range r.guards {
				chain = append(chain, guardOf(&r.guards[i]))
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
		return echo5lock.Unguarded
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
	make := maker[echo.MiddlewareFunc, echo5lock.Config]{
		echo5lock.ByParam, echo5lock.ByHeader, echo5lock.ByQuery, echo5lock.ByTemplate, echo5lock.By, echo5lock.Idempotent, echo5lock.ByAll, echo5lock.New,
	}
	if common := g.with; common != nil {
		make = makerOf(echo5lock.With(common.locker, common.options...))
	}
	return make.middleware(g, echo5Config)
}

func echo5Config(c config) echo5lock.Config {
	cfg := echo5lock.Config{
		Locker: c.locker, Key: c.key, Keys: c.keys, Idempotent: (*echo5lock.Idempotency)(c.idempotent), Options: c.options,
		FailOpen: c.failOpen, Status: c.status, Param: c.param, BufferBody: c.bufferBody, Strict: c.strict,
	}
	if skip := c.skip; skip != nil {
		cfg.Skip = func(c *echo.Context) bool { return skip(c.Request()) }
	}
	if shared := c.shared; shared != nil {
		cfg.Shared = func(c *echo.Context) bool { return shared(c.Request()) }
	}
	if c.safe {
		cfg.Shared = echo5lock.SafeMethods
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
