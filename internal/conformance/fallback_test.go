package conformance_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	echo4 "github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/locktest"
)

// A guard by path parameter that is given to a handler of requests which no route matches refuses them: no parameter is known
// there. Where nothing is registered, and before a handler for all such requests of the application, the answer is 404.
func TestByParamBeforeHandlersOfUnmatchedRequests(t *testing.T) {
	captureLog(t)
	core.SetDefault(locktest.New(t))
	t.Cleanup(func() { core.SetDefault(nil) })
	type server struct {
		http.Handler
		faults int
		report func() (string, error)
	}
	fallbacks := 0
	for name, build := range map[string]func(by guarding) server{
		"gin": func(by guarding) server {
			router, byID := gin.New(), ginGuard(by)
			router.HandleMethodNotAllowed = true
			handle := func(c *gin.Context) { fallbacks++; c.Status(http.StatusNotFound) }
			router.NoRoute(byID, handle)
			router.NoMethod(byID, handle)
			router.POST("/orders/:id", byID, handle)
			return server{router, 2, func() (string, error) {
				report, err := ginlock.RouteCheck(router)
				return report.String(), err
			}}
		},
		"gin, for all": func(guarding) server {
			router := gin.New()
			router.Use(ginlock.ByParam("id"))
			router.NoRoute(func(c *gin.Context) { fallbacks++; c.Status(http.StatusNotFound) })
			return server{router, 0, nil}
		},
		"echo4": func(by guarding) server {
			e, byID := echo4.New(), echo4Guard(by)
			report := echolock.RouteCheck(e)
			handle := func(c echo4.Context) error { fallbacks++; return c.NoContent(http.StatusNotFound) }
			e.RouteNotFound("/*", handle, byID)
			e.Group("/shop", byID).POST("/orders/:id", handle)
			return server{e, 1, func() (string, error) {
				rows, err := report()
				return rows.String(), err
			}}
		},
		"echo4, for all": func(guarding) server {
			e := echo4.New()
			e.Use(echolock.ByParam("id"))
			e.RouteNotFound("/*", func(c echo4.Context) error { fallbacks++; return c.NoContent(http.StatusNotFound) })
			return server{e, 0, nil}
		},
		"echo5": func(by guarding) server {
			e, byID := echo5.New(), echo5Guard(by)
			report := echo5lock.RouteCheck(e)
			handle := func(c *echo5.Context) error { fallbacks++; return c.NoContent(http.StatusNotFound) }
			e.RouteNotFound("/*", handle, byID)
			e.Group("/shop", byID).POST("/orders/:id", handle)
			return server{e, 1, func() (string, error) {
				rows, err := report()
				return rows.String(), err
			}}
		},
		"echo5, for all": func(guarding) server {
			e := echo5.New()
			e.Use(echo5lock.ByParam("id"))
			e.RouteNotFound("/*", func(c *echo5.Context) error { fallbacks++; return c.NoContent(http.StatusNotFound) })
			return server{e, 0, nil}
		},
	} {
		forAll := strings.HasSuffix(name, "for all")
		ways := byEveryWay("id")
		ways["Strict"] = guarding{param: "id", options: []core.Option{ginlock.Strict()}}
		for way, by := range ways {
			fallbacks = 0
			s, want, ran := build(by), http.StatusInternalServerError, 0
			if forAll {
				want, ran = http.StatusNotFound, 1
			}
			if w := send(s, "POST", "/nothing"); w.Code != want || fallbacks != ran {
				t.Errorf("%s, %s: status %d, want %d; the handler ran %d times", name, way, w.Code, want, fallbacks)
			}
			if forAll {
				continue
			}
			if report, err := s.report(); err != nil || strings.Count(report, "has all refused with 500") != s.faults {
				t.Errorf("%s: %v, want %d faults\n%s", name, err, s.faults, report)
			}
			if w := send(s, "POST", "/shop/nothing"); strings.HasPrefix(name, "echo") && (way == "ByParam" || way == "Optional") && w.Code != http.StatusNotFound {
				t.Errorf("%s: where nothing is registered: status %d", name, w.Code)
			}
			if w := send(s, "GET", "/orders/42"); name == "gin" && w.Code != http.StatusInternalServerError {
				t.Errorf("NoMethod: status %d", w.Code)
			}
		}
	}
}
