//go:build go1.25

package echolock_test

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

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
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
func tellKey(c echo.Context) error {
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
		e.Use(echolock.ByParam("orderID", core.NoWait()))
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
		orders := e.Group("/orders/:orderID", echolock.ByParam("orderID", core.NoWait()))
		orders.POST("", tellKey)
		orders.POST("/pay", tellKey)
		orders.Any("/any", tellKey)
		orders.POST("/files/*", tellKey)
		items := e.Group("/items", echolock.ByParam("orderID", core.NoWait()))
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

// A host's routes are known to a router of its own.
func TestHost(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		e := echo.New()
		e.Use(echolock.ByParam("orderID", core.NoWait()))
		e.POST("/elsewhere/:orderID", tellKey)
		host := e.Host("www.example.com")
		host.POST("/orders/:orderID/pay", tellKey)
		host.RouteNotFound("/orders/:orderID/*", echo.NotFoundHandler)
		if w := send(e, "POST", "http://www.example.com/orders/42/pay"); w.Body.String() != "orderID=42" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		busy(t, locker)
		for target, want := range map[string]int{"/orders/42/pay": 409, "/orders/42/other": 404, "/elsewhere/42": 404} {
			if w := send(e, "POST", "http://www.example.com"+target); w.Code != want {
				t.Errorf("%s: %d, want %d", target, w.Code, want)
			}
		}
	})
}

// Routes of which echo tells no names: there are none, or something has removed them.
func TestRoutesWithoutNames(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *core.Locker, log *bytes.Buffer) {
		e := echo.New()
		lock := echolock.ByParam("orderID")
		items := e.Group("/items", lock)
		items.POST("/:orderID", tellKey)
		all := e.Group("/all", lock)
		all.POST("", tellKey)
		e.POST(`/orders\:all`, tellKey, lock)
		forget := func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				c.SetParamNames()
				return next(c)
			}
		}
		e.POST("/orders/:orderID", tellKey, forget, lock)
		for _, c := range []struct {
			target   string
			want     int
			warnings int
		}{
			{"/items", 404, 0},
			{"/all", 200, 1},
			{"/orders:all", 200, 1},
			{"/orders/42", 500, 0},
		} {
			log.Reset()
			if w := send(e, "POST", c.target); w.Code != c.want {
				t.Errorf("%s: %d, want %d", c.target, w.Code, c.want)
			}
			if n := strings.Count(log.String(), "is not guarded"); n != c.warnings {
				t.Errorf("%s: %d warnings, want %d", c.target, n, c.warnings)
			}
		}
	})
}

// These do what echo's own middleware of these names does, which would bring its
// dependencies to everybody's go.sum.

// An error that the error handler outside turns into an answer is no success, and
// neither is an answer of middleware that was written for net/http.
func TestWindowAndLateAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		lock := echolock.ByParam("orderID", core.NoWait(), core.KeepFor(time.Minute))
		failing := echo.WrapMiddleware(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				w.WriteHeader(http.StatusUnprocessableEntity)
			})
		})
		e := echo.New()
		e.POST("/error/:orderID", func(echo.Context) error { return echo.NewHTTPError(http.StatusUnprocessableEntity) }, lock)
		e.POST("/middleware/:orderID", func(echo.Context) error { return nil }, lock, failing)
		for _, target := range []string{"/error/1", "/middleware/2"} {
			for range 2 {
				if w := send(e, "POST", target); w.Code != http.StatusUnprocessableEntity {
					t.Errorf("%s: %d", target, w.Code)
				}
			}
		}
	})
}

// The values of earlier middleware are found in echo's context and in the request's.
func TestValue(t *testing.T) {
	type typedKey struct{}
	inBubble(t, func(t *testing.T, _ *core.Locker, _ *bytes.Buffer) {
		e := echo.New()
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				c.Set("user", "u1")
				c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), typedKey{}, "t1")))
				return next(c)
			}
		})
		e.POST("/", tellKey, echolock.By(keyfunc.Join(keyfunc.Value("user"), keyfunc.Value(typedKey{}))))
		if w := send(e, "POST", "/"); w.Body.String() != "value.user=u1:value.echolock_test.typedKey=t1" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
