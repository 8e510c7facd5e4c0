//go:build go1.25

package ginlock_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// What all adapters have in common is tested in internal/conformance. Here is
// what only gin has.

func serve(router *gin.Engine, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// A lock taken with gin's own context must find its owner there, or the request
// would wait for itself.
func TestGinContextCarriesOwnership(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			locker := locktest.New(t)
			router := gin.New()
			router.ContextWithFallback = fallback
			guard := ginlock.New(ginlock.Config{Locker: locker, Key: keyfunc.Param("id")})
			var after bool
			router.Use(func(c *gin.Context) {
				c.Next()
				_, after = core.FromContext(c)
			})
			router.POST("/orders/:id", guard, func(c *gin.Context) {
				outer, ok := core.FromContext(c)
				if !ok {
					t.Error("c does not hold the lock")
					return
				}
				inner, err := locker.TryLock(c, "id=42")
				if err != nil {
					t.Error(err)
					return
				}
				defer inner.Unlock(c)
				if inner.Owner() != outer.Owner() || inner.Token() != outer.Token() {
					t.Error("the nested lock has another owner")
				}
				if _, err := locker.TryLock(core.Detach(c), "id=42"); err == nil {
					t.Error("a detached context entered the lock")
				}
			})
			if w := serve(router, "POST", "/orders/42"); w.Code != http.StatusOK {
				t.Errorf("status %d", w.Code)
			}
			if after {
				t.Error("c holds the lock after the handler")
			}
		})
	}
}

// Middleware by router.Use runs for unmatched routes as well, where there is
// nothing to guard.
// gin's context is a context, too: who hands it over must not hear that there is no attempt.
func TestAttemptOfAGinContext(t *testing.T) {
	locker := locktest.New(t)
	for _, fallback := range []bool{false, true} {
		router := gin.New()
		router.ContextWithFallback = fallback
		router.Use(func(c *gin.Context) {
			c.Next()
			if n := ginlock.Attempt(c); n != 0 {
				t.Errorf("attempt %d outside", n)
			}
		})
		router.Use(ginlock.Idempotent(keyfunc.Const[keyfunc.Request]("shop"), ginlock.Locker(locker)))
		router.POST("/", func(c *gin.Context) {
			derived, cancel := context.WithCancel(c)
			defer cancel()
			inner, err := locker.Lock(derived, "another")
			if err != nil {
				t.Fatal(err)
			}
			defer inner.Unlock(c)
			for what, ctx := range map[string]context.Context{
				"gin's context": c, "one derived from it": derived, "that of a lock inside": inner.Context(), "the request's": c.Request.Context(),
			} {
				if n := ginlock.Attempt(ctx); n != 1 {
					t.Errorf("%s, fallback %v: attempt %d", what, fallback, n)
				}
			}
		})
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Idempotency-Key", fmt.Sprint(fallback))
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Error(w.Code, w.Body)
		}
	}
}

func TestUseGuardsOnlyRoutesWithTheParameter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core.SetDefault(locktest.New(t))
		t.Cleanup(func() { core.SetDefault(nil) })
		router := gin.New()
		router.Use(ginlock.ByParam("orderID"))
		held := func(c *gin.Context) {
			_, ok := core.FromContext(c)
			c.String(http.StatusOK, "%v", ok)
		}
		router.POST("/orders/:orderID/pay", held)
		router.GET("/health", held)
		for target, want := range map[string]string{"POST /orders/42/pay": "true", "GET /health": "false"} {
			method, path, _ := strings.Cut(target, " ")
			if w := serve(router, method, path); w.Body.String() != want {
				t.Errorf("%s: held %s, want %s", target, w.Body, want)
			}
		}
		if w := serve(router, "GET", "/nothing"); w.Code != http.StatusNotFound {
			t.Errorf("status %d", w.Code)
		}
	})
}

// Unmatched requests get the router's answer, whatever the lock.
func TestUnmatchedRequestsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		core.SetDefault(locker)
		t.Cleanup(func() { core.SetDefault(nil) })
		router := gin.New()
		router.HandleMethodNotAllowed = true
		router.Use(ginlock.ByParam("orderID", core.NoWait()))
		router.POST("/orders/:orderID", func(*gin.Context) { t.Error("the handler ran") })
		router.NoRoute(func(c *gin.Context) { c.String(http.StatusNotFound, "mine") })
		router.NoMethod(func(c *gin.Context) { c.String(http.StatusMethodNotAllowed, "mine") })
		k, err := locker.Lock(context.Background(), "orderID=42")
		if err != nil {
			t.Fatal(err)
		}
		defer k.Unlock(context.Background())
		for request, want := range map[string]int{"POST /orders/42": 409, "GET /orders/42": 405, "POST /nothing": 404} {
			method, path, _ := strings.Cut(request, " ")
			w := serve(router, method, path)
			if w.Code != want || want != 409 && w.Body.String() != "mine" {
				t.Errorf("%s: %d %s, want %d", request, w.Code, w.Body, want)
			}
		}
	})
}

// However a request reaches a guarded route, its lock is by the parameter that the
// handler finds.
func TestWaysToARoute(t *testing.T) {
	tell := func(c *gin.Context) {
		k, held := core.FromContext(c)
		if !held || k.Key() != "orderID="+c.Param("orderID") {
			c.String(http.StatusOK, "not held: ")
		}
		c.String(http.StatusOK, c.Param("orderID"))
	}
	nothing := func(*gin.Context) {}
	for name, way := range map[string]struct {
		setup        func(router *gin.Engine)
		target, want string
	}{
		"raw path":              {func(r *gin.Engine) { r.UseRawPath = true }, "/orders/4%32", "42"},
		"raw path, a slash":     {func(r *gin.Engine) { r.UseRawPath = true }, "/orders/4%2F2", "4/2"},
		"escaped by the client": {func(*gin.Engine) {}, "/orders/4%2532", "4%32"},
		"raw path, not decoded": {func(r *gin.Engine) { r.UseRawPath, r.UnescapePathValues = true, false }, "/orders/42", "42"},
		"extra slashes":         {func(r *gin.Engine) { r.RemoveExtraSlash = true }, "//orders//42", "42"},
		"another route":         {func(r *gin.Engine) { r.POST("/old", dispatchAgain(r)) }, "/old", "42"},
		"another guarded one":   {func(r *gin.Engine) { r.POST("/old/:orderID", dispatchAgain(r)) }, "/old/1", "42"},
		"another chain length":  {func(r *gin.Engine) { r.POST("/old", nothing, dispatchAgain(r)) }, "/old", "42"},
		"no route":              {func(r *gin.Engine) { r.NoRoute(dispatchAgain(r)) }, "/old", "42"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core.SetDefault(locktest.New(t))
				t.Cleanup(func() { core.SetDefault(nil) })
				router := gin.New()
				router.Use(ginlock.ByParam("orderID"))
				router.POST("/orders/:orderID", nothing, nothing, tell)
				way.setup(router)
				if w := serve(router, "POST", way.target); w.Body.String() != way.want {
					t.Errorf("%d %q, want %q", w.Code, w.Body, way.want)
				}
			})
		})
	}
}

// Where gin hands out a parameter as it was sent, the handler may decode it or not.
func TestEscapedParametersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core.SetDefault(locktest.New(t))
		t.Cleanup(func() { core.SetDefault(nil) })
		router := gin.New()
		router.UseRawPath, router.UnescapePathValues = true, false
		router.POST("/orders/:orderID", ginlock.ByParam("orderID"), func(*gin.Context) { t.Error("the handler ran") })
		for _, path := range []string{"/orders/4%32", "/orders/4%2532"} {
			if w := serve(router, "POST", path); w.Code != http.StatusBadRequest {
				t.Errorf("%s: %d", path, w.Code)
			}
		}
	})
}

// dispatchAgain has gin serve another path. Without Abort a gin before 1.11 would go on
// with the handlers of that path a second time.
func dispatchAgain(router *gin.Engine) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Request.URL.Path = "/orders/42"
		router.HandleContext(c)
		c.Abort()
	}
}

// A handler that adds to c.Errors has failed, whatever the status is by then: the
// middleware that turns errors into answers may be outside.
func TestWindowAndLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		router := gin.New()
		router.Use(func(c *gin.Context) {
			c.Next()
			if len(c.Errors) > 0 {
				c.Status(http.StatusUnprocessableEntity)
			}
		})
		guard := ginlock.New(ginlock.Config{
			Locker: locker, Key: keyfunc.Param("id"),
			Options: []core.Option{core.KeepFor(1e9), core.NoWait()},
		})
		router.POST("/orders/:id", guard, func(c *gin.Context) { _ = c.Error(http.ErrNoCookie) })
		for range 2 {
			if w := serve(router, "POST", "/orders/42"); w.Code != http.StatusUnprocessableEntity {
				t.Errorf("status %d", w.Code)
			}
		}
	})
}

// Errors that were there before are not the handler's.
func TestErrorsOfEarlierMiddlewareAreNotTheHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		router := gin.New()
		router.Use(func(c *gin.Context) { _ = c.Error(http.ErrNoCookie) })
		guard := ginlock.New(ginlock.Config{
			Locker: locker, Key: keyfunc.Param("id"),
			Options: []core.Option{core.KeepFor(1e9), core.NoWait()},
		})
		router.POST("/orders/:id", guard, func(*gin.Context) {})
		serve(router, "POST", "/orders/42")
		info, err := locker.Inspect(context.Background(), "id=42")
		if err != nil || !info.Locked {
			t.Errorf("no dedup window after a success: %+v, %v", info, err)
		}
	})
}

// The values of earlier middleware are found by gin's string keys and by the
// request's own.
func TestValue(t *testing.T) {
	type typedKey struct{}
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		router := gin.New()
		router.Use(func(c *gin.Context) {
			c.Set("user", "u1")
			c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), typedKey{}, "t1"))
		})
		key := keyfunc.Join(keyfunc.Value("user"), keyfunc.Value(typedKey{}))
		router.POST("/", ginlock.New(ginlock.Config{Locker: locker, Key: key}), func(c *gin.Context) {
			if k, ok := core.FromContext(c); !ok || k.Key() != "value.user=u1:value.ginlock_test.typedKey=t1" {
				t.Errorf("holds %v", k)
			}
		})
		if w := serve(router, "POST", "/"); w.Code != http.StatusOK {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}
