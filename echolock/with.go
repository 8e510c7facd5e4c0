// Code generated from ginlock/with.go by internal/architecture. DO NOT EDIT.

package echolock

import (
	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Guards makes middleware that has something in common: see [With]. It is safe for concurrent use. The zero value is With(nil).
type Guards struct{ common guard.Common[onRefusedFunc] }

type onRefusedFunc = func(c echo.Context, err error) error

// withDefault is that of the functions.
var withDefault Guards

// With returns what makes middleware with one Locker and the same options, in place of [core.SetDefault], [SetOnRefused] and
// options in each place:
//
//	locks := echolock.With(locker, echolock.OnRefused(answer), core.Wait(time.Second))
//	e.POST("/orders/:orderID/pay", pay, locks.ByParam("orderID"))
//
// Its methods are the functions of this package, and those are With(nil)'s: nil means [core.Default], looked up for each
// request. What a middleware is given itself, as an option or in its Config, overrides what it has in common with
// others; FailOpen and Strict cannot be taken back, and Strict concerns those by a path parameter. It panics when an option is
// bad, and the methods do where it cannot be combined with what they are given, such as FailOpen with Idempotent.
func With(l *core.Locker, opts ...core.Option) *Guards {
	return &Guards{guard.With[onRefusedFunc]("echolock", l, opts)}
}

// ByParam is the function [ByParam].
func (g *Guards) ByParam(name string, opts ...core.Option) echo.MiddlewareFunc {
	return g.short(guard.ByParam("echolock", name), opts)
}

// ByHeader is the function [ByHeader].
func (g *Guards) ByHeader(name string, opts ...core.Option) echo.MiddlewareFunc {
	return g.By(keyfunc.Header(name), opts...)
}

// ByQuery is the function [ByQuery].
func (g *Guards) ByQuery(name string, opts ...core.Option) echo.MiddlewareFunc {
	return g.By(keyfunc.Query(name), opts...)
}

// ByTemplate is the function [ByTemplate].
func (g *Guards) ByTemplate(t string, opts ...core.Option) echo.MiddlewareFunc {
	return g.short(guard.ByTemplate("echolock", t), opts)
}

// By is the function [By].
func (g *Guards) By(key keyfunc.Func[keyfunc.Request], opts ...core.Option) echo.MiddlewareFunc {
	return g.short(guard.Config{Key: key}, opts)
}

// ByAll is the function [ByAll].
func (g *Guards) ByAll(keys keyfunc.Set[keyfunc.Request], opts ...core.Option) echo.MiddlewareFunc {
	return g.short(guard.ByAll("echolock", keys), opts)
}

// Idempotent is the function [Idempotent].
func (g *Guards) Idempotent(scope keyfunc.Func[keyfunc.Request], opts ...core.Option) echo.MiddlewareFunc {
	return g.short(guard.Idempotent("echolock", scope), opts)
}

// New is the function [New].
func (g *Guards) New(cfg Config) echo.MiddlewareFunc {
	all := guard.AdapterConfig[echo.Context, Idempotency, onRefusedFunc](cfg)
	return middleware(g.common, cfg, all.Config(func(r guard.Request) echo.Context { return r.(*request).c }))
}

func (g *Guards) short(cfg guard.Config, opts []core.Option) echo.MiddlewareFunc {
	cfg.Options = opts
	return middleware(g.common, Config{}, cfg)
}
