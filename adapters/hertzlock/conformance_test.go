package hertzlock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/middlewares/server/recovery"
	"github.com/cloudwego/hertz/pkg/app/server"

	"github.com/latchkey-go/latchkey/adapters/hertzlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
)

func TestConformance(t *testing.T) {
	overhttp.Run(t, overhttp.Adapter[app.HandlerFunc]{
		Name: "hertzlock", Problems: true, SeesLeaving: true, PassesOthers: true,
		With: func(l *core.Locker, opts ...core.Option) overhttp.Guards[app.HandlerFunc] {
			return hertzlock.With(l, opts...)
		},
		New: func(c overhttp.Config) app.HandlerFunc {
			cfg := hertzlock.Config{Locker: c.Locker, Key: c.Key, Param: c.Param, Options: c.Options}
			if c.Shared {
				cfg.Shared = func(*app.RequestContext) bool { return true }
			}
			if c.Permits > 0 {
				cfg.Permits = func(*app.RequestContext) int { return c.Permits }
			}
			if c.Weight > 0 {
				cfg.Weight = func(*app.RequestContext) int { return c.Weight }
			}
			if c.Skip != nil {
				cfg.Skip = func(*app.RequestContext) bool { return c.Skip() }
			}
			return hertzlock.New(cfg)
		},
		Serve: func(t *testing.T, routes ...overhttp.Route[app.HandlerFunc]) string {
			return serve(t, func(h *server.Hertz) {
				h.Use(recovery.Recovery())
				pattern := strings.NewReplacer("{", ":", "}", "")
				for _, r := range routes {
					h.POST(pattern.Replace(r.Pattern), r.Guard, func(ctx context.Context, c *app.RequestContext) {
						r.Handle(call{ctx, c})
					})
				}
			})
		},
	})
}

type call struct {
	ctx context.Context
	c   *app.RequestContext
}

func (c call) Context() context.Context { return c.ctx }
func (c call) Param(name string) string { return strings.Clone(c.c.Param(name)) }
func (c call) Body() string             { return string(c.c.Request.Body()) }

func (c call) Answer(status int, text string) { c.c.String(status, "%s", text) }
