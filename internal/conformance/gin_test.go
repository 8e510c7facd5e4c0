package conformance_test

import (
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
)

func init() { gin.SetMode(gin.ReleaseMode) }

var ginFramework = framework{name: "gin", adapter: "ginlock", hasErrors: true, statusOf: ginlock.StatusOf, reasonOf: ginlock.ReasonOf, partOf: ginlock.PartOf,
	strict: ginlock.Strict, failOpen: ginlock.FailOpen, status: ginlock.Status, locker: ginlock.Locker, bufferBody: ginlock.BufferBody,
	with:      func(l *core.Locker, opts ...core.Option) { ginlock.With(l, opts...) },
	onRefused: func(f refusing) core.Option { return ginlock.OnRefused(ginRefused(f)) },
	attempt:   ginlock.Attempt, ownKey: ginlock.IdempotencyKey, past: unwrapped,
	setOnRefused: func(f refusing) { ginlock.SetOnRefused(ginRefused(f)) }, build: func(routes ...route) http.Handler {
		router, guardOf := gin.New(), oneEach(ginGuard)
		router.HandleMethodNotAllowed = true
		for _, r := range routes {
			chain := gin.HandlersChain{}
			if r.around != nil {
				chain = append(chain, func(c *gin.Context) {
					r.around(c.Next, func() *http.Request { return c.Request })
					c.Abort() // what it has not run, or is not through with, is not run from here
				})
			}
			if r.failed != nil {
				chain = append(chain, func(c *gin.Context) {
					c.Next()
					for _, err := range c.Errors {
						r.failed(err)
					}
				})
			}
			for _, name := range r.outside {
				chain = append(chain, ginCompanion(name))
			}
			for i := range r.guards {
				chain = append(chain, guardOf(&r.guards[i]))
			}
			for _, name := range r.inside {
				chain = append(chain, ginCompanion(name))
			}
			chain = append(chain, func(c *gin.Context) {
				if err := r.run(c.Writer, c.Request); err != nil {
					_ = c.Error(err)
				}
			})
			pattern := strings.NewReplacer("{path...}", "*path", "{", ":", "}", "").Replace(r.pattern)
			if r.method == anyMethod {
				router.Any(pattern, chain...)
			} else {
				router.Handle(r.method, pattern, chain...)
			}
		}
		return checkedServer{router, func() (report, error) { return reportOf(ginlock.RouteCheck(router)) }}
	}}

func ginCompanion(name companion) gin.HandlerFunc {
	switch name {
	case unguarded:
		return ginlock.Unguarded
	case gzipping:
		return ginGzip
	case recovering:
		return gin.RecoveryWithWriter(io.Discard)
	case identifying:
		return func(c *gin.Context) { c.Header("X-Request-Id", "1") }
	case logging:
		return gin.LoggerWithWriter(log.Writer())
	case authenticating:
		return func(c *gin.Context) { c.Set("userID", "u7") }
	}
	panic("no such companion: " + name)
}

func ginGzip(c *gin.Context) {
	before := c.Writer
	zip := &gzipWriter{ResponseWriter: before}
	c.Writer = &ginGzipWriter{ResponseWriter: before, zip: zip}
	defer func() {
		zip.close()
		c.Writer = before
	}()
	c.Next()
}

// ginGzipWriter leaves the status to gin, whose writer keeps it back anyway.
type ginGzipWriter struct {
	gin.ResponseWriter
	zip *gzipWriter
}

func (w *ginGzipWriter) Write(p []byte) (int, error) { return w.zip.Write(p) }

func (w *ginGzipWriter) WriteString(s string) (int, error) { return w.zip.Write([]byte(s)) }

func ginRefused(refused refusing) func(c *gin.Context, err error) {
	if refused == nil {
		return nil
	}
	return func(c *gin.Context, err error) { refused(c.Writer, c.Request, err) }
}

func ginGuard(g guarding) gin.HandlerFunc {
	make := maker[gin.HandlerFunc, ginlock.Config]{
		ginlock.ByParam, ginlock.ByHeader, ginlock.ByQuery, ginlock.ByTemplate, ginlock.By, ginlock.Idempotent, ginlock.ByAll, ginlock.New,
	}
	if common := g.with; common != nil {
		make = makerOf(ginlock.With(common.locker, common.options...))
	}
	return make.middleware(g, ginConfig)
}

func ginConfig(c config) ginlock.Config {
	cfg := ginlock.Config{
		Locker: c.locker, Key: c.key, Keys: c.keys, Idempotent: (*ginlock.Idempotency)(c.idempotent), Options: c.options,
		FailOpen: c.failOpen, Status: c.status, Param: c.param, BufferBody: c.bufferBody, Strict: c.strict,
	}
	if skip := c.skip; skip != nil {
		cfg.Skip = func(c *gin.Context) bool { return skip(c.Request) }
	}
	if shared := c.shared; shared != nil {
		cfg.Shared = func(c *gin.Context) bool { return shared(c.Request) }
	}
	if c.safe {
		cfg.Shared = ginlock.SafeMethods
	}
	if permits := c.permits; permits != nil {
		cfg.Permits = func(c *gin.Context) int { return permits(c.Request) }
	}
	if weight := c.weight; weight != nil {
		cfg.Weight = func(c *gin.Context) int { return weight(c.Request) }
	}
	if refused := c.onRefused; refused != nil {
		cfg.OnRefused = ginRefused(refused)
	}
	return cfg
}
