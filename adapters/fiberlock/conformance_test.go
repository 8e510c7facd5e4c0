package fiberlock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	recoverer "github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/latchkey-go/latchkey/adapters/fiberlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
)

func TestConformance(t *testing.T) {
	overhttp.Run(t, overhttp.Adapter[fiber.Handler]{
		Name: "fiberlock",
		With: func(l *core.Locker, opts ...core.Option) overhttp.Guards[fiber.Handler] {
			return fiberlock.With(l, opts...)
		},
		New: func(c overhttp.Config) fiber.Handler {
			cfg := fiberlock.Config{Locker: c.Locker, Key: c.Key, Param: c.Param, Options: c.Options}
			if c.Shared {
				cfg.Shared = func(fiber.Ctx) bool { return true }
			}
			if c.Permits > 0 {
				cfg.Permits = func(fiber.Ctx) int { return c.Permits }
			}
			if c.Weight > 0 {
				cfg.Weight = func(fiber.Ctx) int { return c.Weight }
			}
			if c.Skip != nil {
				cfg.Skip = func(fiber.Ctx) bool { return c.Skip() }
			}
			return fiberlock.New(cfg)
		},
		Serve: func(t *testing.T, routes ...overhttp.Route[fiber.Handler]) string {
			app := fiber.New()
			app.Use(recoverer.New())
			for _, r := range routes {
				app.Post(strings.NewReplacer("{", ":", "}", "").Replace(r.Pattern), r.Guard, func(c fiber.Ctx) error {
					r.Handle(call{c})
					return nil
				})
			}
			return serve(t, app)
		},
	})
}

type call struct{ c fiber.Ctx }

func (c call) Context() context.Context { return c.c.Context() }
func (c call) Param(name string) string { return strings.Clone(c.c.Params(name)) }
func (c call) Body() string             { return string(c.c.Body()) }

func (c call) Answer(status int, text string) { _ = c.c.Status(status).SendString(text) }
