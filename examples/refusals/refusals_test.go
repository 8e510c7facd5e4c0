//go:build go1.25

package refusals_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
	"github.com/latchkey-go/latchkey/examples/refusals"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/locktest"
)

// who is the client of a request, as your middleware for request IDs and sessions knows it.
func who(r *http.Request) refusals.Who {
	return refusals.Who{RequestID: r.Header.Get("X-Request-ID"), User: r.Header.Get("X-User")}
}

func ofHTTP(locker *core.Locker) http.Handler {
	guard := httplock.With(locker).ByParam("orderID", core.NoWait(), core.Name("pay"))
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{orderID}/pay", guard(http.NotFoundHandler()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(refusals.With(r.Context(), who(r))))
	})
}

func ofGin(locker *core.Locker) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(func(c *gin.Context) {
		c.Request = c.Request.WithContext(refusals.With(c.Request.Context(), who(c.Request)))
	})
	router.Use(ginlock.With(locker).ByParam("orderID", core.NoWait(), core.Name("pay")))
	router.POST("/orders/:orderID/pay", func(*gin.Context) {})
	return router
}

func ofEcho(locker *core.Locker) http.Handler {
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			c.SetRequest(r.WithContext(refusals.With(r.Context(), who(r))))
			return next(c)
		}
	})
	e.Use(echolock.With(locker).ByParam("orderID", core.NoWait(), core.Name("pay")))
	e.POST("/orders/:orderID/pay", func(echo.Context) error { return nil })
	return e
}

func TestEachRefusalSaysWhoWasRefusedAndWhoHadTheLock(t *testing.T) {
	for name, server := range map[string]func(*core.Locker) http.Handler{"net/http": ofHTTP, "gin": ofGin, "echo": ofEcho} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines bytes.Buffer
				log := refusals.New(slog.New(slog.NewTextHandler(&lines, nil)))
				locker := locktest.New(t, core.Observe(log))
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go log.Run(ctx, locker)
				held, err := locker.Lock(ctx, "orderID=42")
				if err != nil {
					t.Fatal(err)
				}
				handler := server(locker)
				for range 200 { // of which a hundred wait for their lines
					r := httptest.NewRequest("POST", "/orders/42/pay", nil)
					r.Header.Set("X-Request-ID", "req-7")
					r.Header.Set("X-User", "anna")
					handler.ServeHTTP(httptest.NewRecorder(), r)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if n := strings.Count(lines.String(), "\n"); n < 9 || n > 11 {
					t.Errorf("%d lines in a second", n)
				}
				for _, want := range []string{
					`msg="a request was refused" request_id=req-7 user=anna at=2000-01-01`, " guard=pay reason=no_wait status=409 key=\"orderID=42\" holder=" + held.Owner() + "\n",
					"omitted=",
				} {
					if !strings.Contains(lines.String(), want) {
						t.Errorf("no %s in\n%s", want, lines.String())
					}
				}
				if err := held.Unlock(ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
