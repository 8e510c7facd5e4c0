// Code generated from adapters/hertzlock/with.go by internal/architecture. DO NOT EDIT.

package fiberlock

import (
	"cmp"
	"slices"

	"github.com/gofiber/fiber/v3"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Guards makes middleware that has something in common: see [With]. It is safe for concurrent use. The zero value is With(nil).
type Guards struct {
	locker  *core.Locker
	options []core.Option
}

// withDefault is that of the functions.
var withDefault Guards

// With returns what makes middleware with one Locker and the same options, in place of [core.SetDefault] and options in each place:
//
//	locks := fiberlock.With(locker, core.Wait(time.Second))
//	app.Post("/orders/:orderID/pay", locks.ByParam("orderID"), pay)
//
// Its methods are the functions of this package, and those are With(nil)'s: nil means [core.Default], looked up for each
// request. What a middleware is given itself, as an option or in its Config, overrides what it has in common with
// others. It panics when an option is bad.
func With(l *core.Locker, opts ...core.Option) *Guards {
	mustBeGood(opts)
	return &Guards{l, opts}
}

// ByParam is the function [ByParam].
func (g *Guards) ByParam(name string, opts ...core.Option) fiber.Handler {
	return g.New(Config{Param: cmp.Or(name, " "), Options: opts})
}

// ByHeader is the function [ByHeader].
func (g *Guards) ByHeader(name string, opts ...core.Option) fiber.Handler {
	return g.By(keyfunc.Header(name), opts...)
}

// ByQuery is the function [ByQuery].
func (g *Guards) ByQuery(name string, opts ...core.Option) fiber.Handler {
	return g.By(keyfunc.Query(name), opts...)
}

// ByTemplate is the function [ByTemplate].
func (g *Guards) ByTemplate(t string, opts ...core.Option) fiber.Handler {
	key, err := keyfunc.Template(t)
	if err != nil {
		panic("fiberlock: ByTemplate: " + err.Error())
	}
	return g.By(key, opts...)
}

// By is the function [By].
func (g *Guards) By(key keyfunc.Func[keyfunc.Request], opts ...core.Option) fiber.Handler {
	return g.New(Config{Key: key, Options: opts})
}

// ByAll is the function [ByAll].
func (g *Guards) ByAll(keys keyfunc.Set[keyfunc.Request], opts ...core.Option) fiber.Handler {
	return g.New(Config{Keys: keys, Options: opts})
}

// New is the function [New].
func (g *Guards) New(cfg Config) fiber.Handler {
	cfg.Locker = cmp.Or(cfg.Locker, g.locker)
	cfg.Options = slices.Concat(g.options, cfg.Options)
	return newGuard(cfg).serve
}

func mustBeGood(opts []core.Option) {
	if err := adapter.Validate(opts...); err != nil {
		panic("fiberlock: " + err.Error())
	}
}
