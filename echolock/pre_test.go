package echolock_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Before routing nothing is known of parameters.
func TestPreIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *core.Locker, log *bytes.Buffer) {
		e := echo.New()
		e.Pre(echolock.ByParam("orderID"))
		e.POST("/orders/:orderID", func(echo.Context) error {
			t.Error("the handler ran")
			return nil
		})
		if w := send(e, "POST", "/orders/42"); w.Code != http.StatusInternalServerError {
			t.Errorf("status %d", w.Code)
		}
		if !strings.Contains(log.String(), "before the router has matched") {
			t.Errorf("the log does not say what is wrong: %s", log)
		}
	})
}

// A method that is overridden after routing does not make a guarded route a 404.
func TestMethodOverride(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		e := echo.New()
		e.Use(overrideMethod)
		orders := e.Group("/orders/:orderID", echolock.ByParam("orderID", core.NoWait()))
		orders.POST("", tellKey)
		orders.POST("/pay", tellKey)
		for _, target := range []string{"/orders/42", "/orders/42/pay"} {
			if w := send(e, "POST", target+"?method=PUT"); w.Body.String() != "orderID=42" {
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			}
		}
		busy(t, locker)
		for request, want := range map[string]int{
			"POST /orders/42?method=PUT":     409,
			"POST /orders/42/pay?method=PUT": 409,
			"POST /orders/42/x?method=PUT":   404,
			"PUT /orders/42":                 404,
		} {
			method, target, _ := strings.Cut(request, " ")
			if w := send(e, method, target); w.Code != want {
				t.Errorf("%s: %d, want %d", request, w.Code, want)
			}
		}
	})
}

// Middleware in e.Pre that changes the request behind the guard does not lead past it.
func TestPreIsRefusedBeforeChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change         echo.MiddlewareFunc
		method, target string
	}{
		"slash":   {removeTrailingSlash, "POST", "/orders/42/pay/"},
		"rewrite": {rewriteOld, "POST", "/old/42/pay"},
		"method":  {overrideMethod, "GET", "/orders/42/pay?method=POST"},
	} {
		for how, lock := range map[string]echo.MiddlewareFunc{
			"ByParam":  echolock.ByParam("orderID"),
			"Optional": echolock.By(keyfunc.Optional(keyfunc.Param("orderID"))),
			"Param":    echolock.New(echolock.Config{Param: "orderID"}),
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, _ *core.Locker, log *bytes.Buffer) {
					e := echo.New()
					e.Pre(lock)
					e.Pre(c.change)
					e.POST("/orders/:orderID/pay", func(echo.Context) error {
						t.Error("the handler ran")
						return nil
					})
					for range 2 { // contexts are used again
						w := send(e, c.method, c.target)
						if w.Code != http.StatusInternalServerError {
							t.Errorf("status %d", w.Code)
						}
					}
					if !strings.Contains(log.String(), "before the router has matched") {
						t.Errorf("the log does not say what is wrong: %s", log)
					}
				})
			})
		}
	}
}

func overrideMethod(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if method := c.QueryParam("method"); method != "" {
			c.Request().Method = method
		}
		return next(c)
	}
}

func removeTrailingSlash(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		r.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
		r.RequestURI = r.URL.Path
		return next(c)
	}
}

func rewriteOld(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if rest, found := strings.CutPrefix(c.Request().URL.Path, "/old/"); found {
			c.Request().URL.Path = "/orders/" + rest
		}
		return next(c)
	}
}
