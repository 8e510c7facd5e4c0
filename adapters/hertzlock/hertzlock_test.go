package hertzlock_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"

	"github.com/latchkey-go/latchkey/adapters/hertzlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// What all adapters have in common is tested in internal/overhttp. Here is what is special about hertz.

var orderID = keyfunc.Int(keyfunc.Param("orderID"))

func nothing(context.Context, *app.RequestContext) {}

// guarded is one route, whose handler is guarded.
func guarded(locker *core.Locker, handler app.HandlerFunc, opts ...core.Option) func(*server.Hertz) {
	return func(h *server.Hertz) {
		h.POST("/orders/:orderID", hertzlock.With(locker).By(orderID, opts...), handler)
	}
}

func want(t *testing.T, a overhttp.Answer, status int) {
	t.Helper()
	if a.Status != status {
		t.Errorf("%d %q, want %d", a.Status, a.Body, status)
	}
}

// A group, and h.Use before the routes, know the route. What is no route is none still.
func TestUse(t *testing.T) {
	var log overhttp.Log
	locker, heard := overhttp.NewLocker(t, core.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	url := serve(t, func(h *server.Hertz) {
		h.Use(hertzlock.With(locker).ByParam("orderID"), hertzlock.With(locker).By(keyfunc.Optional(keyfunc.Header("X-Order"))))
		h.POST("/orders/:orderID", nothing)
		h.POST("/twice/:orderID/:orderID", nothing)
		h.POST("/users/:userID", nothing)
	})
	want(t, overhttp.Post(t, url+"/orders/42", ""), http.StatusOK)
	if key := heard.Next(t, core.EventAcquired).Key; key != "orderID=42" {
		t.Errorf("key %s", key)
	}
	want(t, overhttp.Post(t, url+"/nowhere", "", "X-Order", "42"), http.StatusNotFound)
	want(t, overhttp.Post(t, url+"/twice/42/43", ""), http.StatusInternalServerError)
	for range 2 {
		want(t, overhttp.Post(t, url+"/users/7", ""), http.StatusOK)
	}
	if n := log.Count("is not guarded"); n != 1 {
		t.Errorf("%d lines of a route that is not guarded", n)
	}
}

// A function that has its key may have tried a parameter that the route has not, but not one that it has twice.
func TestParameterThatIsDeclaredTwice(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	url := serve(t, func(h *server.Hertz) {
		h.POST("/:orderID/:orderID", hertzlock.With(locker).By(func(r keyfunc.Request) (string, error) {
			r.Param("orderID")
			return "a key all the same", nil
		}), func(context.Context, *app.RequestContext) { t.Error("the handler ran") })
	})
	want(t, overhttp.Post(t, url+"/42/43", ""), http.StatusInternalServerError)
}

// By has a request without a route refused, for it has no key; that is not the set-up's fault.
func TestByWhereNoRouteMatches(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	url := serve(t, func(h *server.Hertz) {
		h.Use(hertzlock.With(locker).By(orderID))
		h.POST("/orders/:orderID", nothing)
	})
	want(t, overhttp.Post(t, url+"/nowhere", ""), http.StatusBadRequest)
}

// An error of the handler's own is no success. Those of earlier middleware are not the handler's.
func TestErrorsOpenNoWindow(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	var works atomic.Bool
	url := serve(t, func(h *server.Hertz) {
		h.Use(func(_ context.Context, c *app.RequestContext) { _ = c.Error(errors.New("a warning")) })
		guarded(locker, func(_ context.Context, c *app.RequestContext) {
			if !works.Load() {
				_ = c.Error(errors.New("a failure"))
			}
		}, core.NoWait(), core.KeepFor(time.Hour))(h)
	})
	want(t, overhttp.Post(t, url+"/orders/42", ""), http.StatusOK)
	works.Store(true)
	want(t, overhttp.Post(t, url+"/orders/42", ""), http.StatusOK)
	want(t, overhttp.Post(t, url+"/orders/42", ""), http.StatusConflict)
}

func TestOnRefused(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	locktest.Hold(t, locker, "orderID=42")
	url := serve(t, func(h *server.Hertz) {
		h.POST("/orders/:orderID", hertzlock.New(hertzlock.Config{Locker: locker, Param: "orderID", Options: []core.Option{core.NoWait()},
			OnRefused: func(_ context.Context, c *app.RequestContext, err error) {
				if !errors.Is(err, core.ErrNotAcquired) {
					t.Errorf("error %v", err)
				}
				c.Response.SetBodyString("later: " + err.Error())
			}}), func(context.Context, *app.RequestContext) { t.Error("the handler ran") })
	})
	a := overhttp.Post(t, url+"/orders/42", "")
	want(t, a, http.StatusConflict)
	if a.Body != "later: Another request for the same resource is being processed." || a.Header.Get("Retry-After") == "" {
		t.Errorf("%v", a)
	}
}

// The functions take the default Locker.
func TestFunctions(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	core.SetDefault(locker)
	t.Cleanup(func() { core.SetDefault(nil) })
	for key, guard := range map[string]app.HandlerFunc{
		"orderID=42":   hertzlock.ByParam("orderID"),
		"X-Order=43":   hertzlock.ByHeader("X-Order"),
		"id=44":        hertzlock.ByQuery("id"),
		"order:42":     hertzlock.ByTemplate("order:{param.orderID}"),
		"account=42":   hertzlock.ByAll(keyfunc.All("account", keyfunc.Param("orderID"))),
		"X-Order=0043": hertzlock.New(hertzlock.Config{Key: func(keyfunc.Request) (string, error) { return "X-Order=0043", nil }}),
	} {
		url := serve(t, func(h *server.Hertz) {
			h.POST("/orders/:orderID", guard, func(ctx context.Context, _ *app.RequestContext) {
				if lock, held := core.FromContext(ctx); !held || lock.Key() != key {
					t.Errorf("the lock is %v, want %s", lock, key)
				}
			})
		})
		want(t, overhttp.Post(t, url+"/orders/42?id=44", "", "X-Order", "43"), http.StatusOK)
	}
}
