package conformance_test

import (
	"fmt"
	"log"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
)

var echo4Framework = framework{name: "echo v4", adapter: "echolock", hasErrors: true, statusOf: echolock.StatusOf, reasonOf: echolock.ReasonOf, partOf: echolock.PartOf,
	strict: echolock.Strict, failOpen: echolock.FailOpen, status: echolock.Status, locker: echolock.Locker, bufferBody: echolock.BufferBody,
	with:      func(l *core.Locker, opts ...core.Option) { echolock.With(l, opts...) },
	onRefused: func(f refusing) core.Option { return echolock.OnRefused(echo4Refused(f)) },
	attempt:   echolock.Attempt, ownKey: echolock.IdempotencyKey, past: echo4Past,
	httpError:    func(status int, text string) error { return echo.NewHTTPError(status, text) },
	setOnRefused: func(f refusing) { echolock.SetOnRefused(echo4Refused(f)) }, build: func(routes ...route) http.Handler {
		e, guardOf := echo.New(), oneEach(echo4Guard)
		check := echolock.RouteCheck(e)
		for _, r := range routes {
			var chain []echo.MiddlewareFunc
			if r.around != nil {
				chain = append(chain, func(next echo.HandlerFunc) echo.HandlerFunc {
					return func(c echo.Context) (err error) {
						r.around(func() { err = next(c) }, c.Request)
						return err
					}
				})
			}
			if r.failed != nil {
				chain = append(chain, func(next echo.HandlerFunc) echo.HandlerFunc {
					return func(c echo.Context) error {
						err := next(c)
						if err != nil {
							r.failed(err)
						}
						return err
					}
				})
			}
			for _, name := range r.outside {
				chain = append(chain, echo4Companion(name))
			}
			for i := range r.guards {
				chain = append(chain, guardOf(&r.guards[i]))
			}
			for _, name := range r.inside {
				chain = append(chain, echo4Companion(name))
			}
			pattern := strings.NewReplacer("{path...}", "*", "{", ":", "}", "").Replace(r.pattern)
			handler := func(c echo.Context) error { return r.run(c.Response(), c.Request()) }
			if r.method == anyMethod {
				e.Any(pattern, handler, chain...)
			} else {
				e.Add(r.method, pattern, handler, chain...)
			}
		}
		return checkedServer{e, func() (report, error) { return reportOf(check()) }}
	}}

// echo4Companion has no use for echo's package middleware, which would bring its
// dependencies to everybody's go.sum. These do what those do.
func echo4Companion(name companion) echo.MiddlewareFunc {
	if name == unguarded {
		return echolock.Unguarded
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			switch name {
			case gzipping:
				before := c.Response().Writer
				zip := &gzipWriter{ResponseWriter: before}
				c.Response().Writer = zip
				defer func() {
					zip.close()
					c.Response().Writer = before
				}()
			case recovering:
				defer func() {
					switch v := recover(); v {
					case nil:
					case http.ErrAbortHandler:
						panic(v)
					default:
						c.Error(fmt.Errorf("%v", v))
					}
				}()
			case identifying:
				c.Response().Header().Set(echo.HeaderXRequestID, "1")
			case logging:
				defer func() {
					if err != nil {
						c.Error(err)
					}
					log.Print("status ", c.Response().Status)
				}()
			case authenticating:
				c.Set("userID", "u7")
			default:
				panic("no such companion: " + name)
			}
			return next(c)
		}
	}
}

func echo4Refused(refused refusing) func(c echo.Context, err error) error {
	if refused == nil {
		return nil
	}
	return func(c echo.Context, err error) error {
		refused(c.Response(), c.Request(), err)
		return nil
	}
}

func echo4Guard(g guarding) echo.MiddlewareFunc {
	make := maker[echo.MiddlewareFunc, echolock.Config]{
		echolock.ByParam, echolock.ByHeader, echolock.ByQuery, echolock.ByTemplate, echolock.By, echolock.Idempotent, echolock.ByAll, echolock.New,
	}
	if common := g.with; common != nil {
		make = makerOf(echolock.With(common.locker, common.options...))
	}
	return make.middleware(g, echo4Config)
}

func echo4Config(c config) echolock.Config {
	cfg := echolock.Config{
		Locker: c.locker, Key: c.key, Keys: c.keys, Idempotent: (*echolock.Idempotency)(c.idempotent), Options: c.options,
		FailOpen: c.failOpen, Status: c.status, Param: c.param, BufferBody: c.bufferBody, Strict: c.strict,
	}
	if skip := c.skip; skip != nil {
		cfg.Skip = func(c echo.Context) bool { return skip(c.Request()) }
	}
	if shared := c.shared; shared != nil {
		cfg.Shared = func(c echo.Context) bool { return shared(c.Request()) }
	}
	if c.safe {
		cfg.Shared = echolock.SafeMethods
	}
	if permits := c.permits; permits != nil {
		cfg.Permits = func(c echo.Context) int { return permits(c.Request()) }
	}
	if weight := c.weight; weight != nil {
		cfg.Weight = func(c echo.Context) int { return weight(c.Request()) }
	}
	if refused := c.onRefused; refused != nil {
		cfg.OnRefused = echo4Refused(refused)
	}
	return cfg
}

// echo4Past puts a writer from outside in the place of the guard's.
func echo4Past(w http.ResponseWriter) http.ResponseWriter {
	r := w.(*echo.Response)
	r.Writer = unwrapped(r.Writer)
	return r
}
