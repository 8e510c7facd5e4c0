package conformance_test

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/ginlock"
)

func init() { gin.SetMode(gin.ReleaseMode) }

var ginFramework = framework{name: "gin", hasErrors: true, build: func(routes ...route) http.Handler {
	router := gin.New()
	router.HandleMethodNotAllowed = true
	for _, r := range routes {
		chain := gin.HandlersChain{}
		if r.around != nil {
			chain = append(chain, func(c *gin.Context) {
				r.around(c.Next, func() *http.Request { return c.Request })
			})
		}
		for _, g := range r.guards {
			chain = append(chain, ginGuard(g))
		}
		chain = append(chain, func(c *gin.Context) {
			r.handle(c.Writer, c.Request)
			if r.fail != nil {
				_ = c.Error(r.fail)
			}
		})
		pattern := strings.NewReplacer("{", ":", "}", "").Replace(r.pattern)
		router.Handle(r.method, pattern, chain...)
	}
	return router
}}

func ginGuard(g guarding) gin.HandlerFunc {
	switch {
	case g.config != nil:
		cfg := ginlock.Config{
			Locker: g.config.locker, Key: g.config.key, Options: g.config.options,
			FailOpen: g.config.failOpen, Status: g.config.status,
		}
		if skip := g.config.skip; skip != nil {
			cfg.Skip = func(c *gin.Context) bool { return skip(c.Request) }
		}
		if refused := g.config.onRefused; refused != nil {
			cfg.OnRefused = func(c *gin.Context, err error) { refused(c.Writer, err) }
		}
		return ginlock.New(cfg)
	case g.template != "":
		return ginlock.ByTemplate(g.template, g.options...)
	case g.key != nil:
		return ginlock.By(g.key, g.options...)
	case g.header != "":
		return ginlock.ByHeader(g.header, g.options...)
	case g.query != "":
		return ginlock.ByQuery(g.query, g.options...)
	default:
		return ginlock.ByParam(g.param, g.options...)
	}
}
