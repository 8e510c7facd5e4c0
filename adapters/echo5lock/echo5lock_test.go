package echo5lock_test

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

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// What all adapters have in common is tested in internal/conformance. Here is
// what only echo has.

// inBubble runs f with a default Locker, and with what was logged.
func inBubble(t *testing.T, f func(t *testing.T, locker *core.Locker, log *bytes.Buffer)) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		t.Cleanup(func() { slog.SetDefault(before) })
		locker := locktest.New(t)
		core.SetDefault(locker)
		t.Cleanup(func() { core.SetDefault(nil) })
		f(t, locker, &log)
	})
}

func send(e *echo.Echo, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// tellKey answers with the key of the lock that it is called under.
func tellKey(c *echo.Context) error {
	if k, held := core.FromContext(c.Request().Context()); held {
		return c.String(http.StatusOK, k.Key())
	}
	return c.String(http.StatusOK, "")
}

// busy holds the lock of orderID=42 until the test ends, so that whatever takes a
// lock is refused.
func busy(t *testing.T, locker *core.Locker) {
	k, err := locker.Lock(context.Background(), "orderID=42")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Unlock(context.Background()) })
}

// Unmatched requests get the router's answer, whatever the lock: they pass.
func TestUseGuardsOnlyWhatIsMatched(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, log *bytes.Buffer) {
		e := echo.New()
		e.Use(echo5lock.ByParam("orderID", core.NoWait()))
		e.POST("/orders/:orderID/pay", tellKey)
		if w := send(e, "POST", "/orders/42/pay"); w.Body.String() != "orderID=42" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		busy(t, locker)
		for request, want := range map[string]int{
			"POST /orders/42/pay":   409,
			"GET /orders/42/pay":    405,
			"GET /orders//pay":      405,
			"POST /orders/42/other": 404,
			"POST /nothing":         404,
		} {
			method, target, _ := strings.Cut(request, " ")
			if w := send(e, method, target); w.Code != want {
				t.Errorf("%s: %d, want %d", request, w.Code, want)
			}
		}
		if log.Len() > 0 {
			t.Errorf("there is nothing to warn of: %s", log)
		}
	})
}

// A group with middleware has routes of its own for 404.
func TestGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		e := echo.New()
		orders := e.Group("/orders/:orderID", echo5lock.ByParam("orderID", core.NoWait()))
		orders.POST("", tellKey)
		orders.POST("/pay", tellKey)
		orders.Any("/any", tellKey)
		orders.POST("/files/*", tellKey)
		items := e.Group("/items", echo5lock.ByParam("orderID", core.NoWait()))
		items.POST("/:orderID", tellKey)
		for _, target := range []string{"/orders/42", "/orders/42/pay", "/orders/42/any", "/orders/42/files/a/b", "/items/42"} {
			if w := send(e, "POST", target); w.Body.String() != "orderID=42" {
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			}
		}
		busy(t, locker)
		for request, want := range map[string]int{
			"POST /orders/42/pay":     409,
			"PUT /orders/42/any":      409,
			"POST /orders/42/files/a": 409,
			"POST /orders//pay":       400,
			"POST /items/42":          409,
			"POST /orders/42/other":   404,
			"POST /orders/42":         409,
			"GET /orders/42":          404,
			"POST /orders//other":     404,
			"POST /items/":            404,
		} {
			method, target, _ := strings.Cut(request, " ")
			if w := send(e, method, target); w.Code != want {
				t.Errorf("%s: %d, want %d", request, w.Code, want)
			}
		}
	})
}

// Before routing nothing is known of parameters.
func TestPreIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *core.Locker, log *bytes.Buffer) {
		e := echo.New()
		e.Pre(echo5lock.ByParam("orderID"))
		e.POST("/orders/:orderID", func(*echo.Context) error {
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
		orders := e.Group("/orders/:orderID", echo5lock.ByParam("orderID", core.NoWait()))
		orders.POST("", tellKey)
		orders.POST("/pay", tellKey)
		busy(t, locker)
		for request, want := range map[string]int{
			"POST /orders/42?method=PUT":     409,
			"POST /orders/42/pay?method=PUT": 409,
			"POST /orders/42/x?method=PUT":   404,
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
		"slash":   {middleware.RemoveTrailingSlash(), "POST", "/orders/42/pay/"},
		"rewrite": {middleware.Rewrite(map[string]string{"/old/*": "/orders/$1"}), "POST", "/old/42/pay"},
		"method":  {overrideMethod, "POST", "/orders/42/pay?method=PUT"},
	} {
		for how, lock := range map[string]echo.MiddlewareFunc{
			"ByParam":  echo5lock.ByParam("orderID"),
			"Optional": echo5lock.By(keyfunc.Optional(keyfunc.Param("orderID"))),
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, _ *core.Locker, log *bytes.Buffer) {
					e := echo.New()
					e.Pre(lock)
					e.Pre(c.change)
					e.Any("/orders/:orderID/pay", func(*echo.Context) error {
						t.Error("the handler ran")
						return nil
					})
					for range 2 { // contexts are used again
						if w := send(e, c.method, c.target); w.Code != http.StatusInternalServerError {
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
	return middleware.MethodOverrideWithConfig(middleware.MethodOverrideConfig{Getter: middleware.MethodFromQuery("method")})(next)
}

// An error that the error handler outside turns into an answer is no success, and
// neither is an answer of middleware that was written for net/http.
func TestWindowAndLateAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		lock := echo5lock.ByParam("orderID", core.NoWait(), core.KeepFor(time.Minute))
		failing := echo.WrapMiddleware(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				w.WriteHeader(http.StatusUnprocessableEntity)
			})
		})
		e := echo.New()
		e.POST("/error/:orderID", func(*echo.Context) error { return echo.NewHTTPError(http.StatusUnprocessableEntity, "no") }, lock)
		e.POST("/middleware/:orderID", func(*echo.Context) error { return nil }, lock, failing)
		for _, target := range []string{"/error/1", "/middleware/2"} {
			for range 2 {
				if w := send(e, "POST", target); w.Code != http.StatusUnprocessableEntity {
					t.Errorf("%s: %d", target, w.Code)
				}
			}
		}
	})
}

// The handler writes to a response that is watched. A status that comes after it has
// answered does not count, and those outside find their own response again.
func TestResponse(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		e := echo.New()
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				outside := c.Response()
				err := next(c)
				if c.Response() != outside {
					t.Error("afterwards there is another response")
				}
				return err
			}
		})
		e.POST("/flush/:orderID", func(c *echo.Context) error {
			c.Response().(http.Flusher).Flush()
			c.Response().WriteHeader(http.StatusInternalServerError)
			return nil
		}, echo5lock.ByParam("orderID", core.KeepFor(time.Minute)))
		send(e, "POST", "/flush/42")
		if info, err := locker.Inspect(t.Context(), "orderID=42"); err != nil || !info.Locked {
			t.Errorf("no dedup window after a success: %+v, %v", info, err)
		}
	})
}

// The values of earlier middleware are found in echo's context and in the request's.
func TestValue(t *testing.T) {
	type typedKey struct{}
	inBubble(t, func(t *testing.T, _ *core.Locker, _ *bytes.Buffer) {
		e := echo.New()
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				c.Set("user", "u1")
				c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), typedKey{}, "t1")))
				return next(c)
			}
		})
		e.POST("/", tellKey, echo5lock.By(keyfunc.Join(keyfunc.Value("user"), keyfunc.Value(typedKey{}))))
		if w := send(e, "POST", "/"); w.Body.String() != "value.user=u1:value.echo5lock_test.typedKey=t1" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
