//go:build go1.25

package ginlock_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// Some versions of gin run handlers of the other route again after HandleContext, from where the first route was.
func TestHandleContextRunsNothingOutsideOfTheLock(t *testing.T) {
	locker := locktest.New(t)
	runs, unlocked := 0, 0
	work := func(c *gin.Context) {
		runs++
		if _, held := core.FromContext(c.Request.Context()); !held {
			unlocked++
		}
		if c.Query("panic") != "" {
			panic("work")
		}
	}
	router := gin.New()
	router.Use(gin.RecoveryWithWriter(io.Discard))
	guarded := ginlock.New(ginlock.Config{Locker: locker, Key: keyfunc.Param("id"), Options: []core.Option{core.NoWait()}})
	router.POST("/orders/:id", guarded, func(c *gin.Context) {}, func(c *gin.Context) {}, func(c *gin.Context) {}, work)
	other := func(c *gin.Context) {
		c.Request.URL.Path = "/orders/42"
		router.HandleContext(c)
	}
	router.POST("/old", other)
	router.POST("/older", func(c *gin.Context) {}, func(c *gin.Context) {}, other)
	router.NoRoute(other)

	for _, target := range []string{"/old", "/older", "/nowhere", "/old?panic=1", "/older?panic=1"} {
		runs = 0
		if serve(router, "POST", target); runs != 1 || unlocked != 0 {
			t.Errorf("%s: %d runs, %d without the lock", target, runs, unlocked)
		}
	}
	defer locktest.Hold(t, locker, "id=42")()
	for _, target := range []string{"/old", "/older", "/nowhere"} {
		runs = 0
		if w := serve(router, "POST", target); runs != 0 || w.Code != http.StatusConflict {
			t.Errorf("%s, while the lock is held: %d runs, status %d", target, runs, w.Code)
		}
	}
}

// gin goes on with the handler behind the one that has panicked where middleware recovers and does not abort.
func TestNothingRunsAfterAPanicOutsideOfTheLock(t *testing.T) {
	locker := locktest.New(t)
	router := gin.New()
	router.Use(func(c *gin.Context) {
		defer func() { _ = recover() }()
		c.Next()
	})
	ran := false
	router.POST("/orders/:id", ginlock.New(ginlock.Config{Locker: locker, Key: keyfunc.Param("id")}),
		func(*gin.Context) { panic("validation") }, func(*gin.Context) { ran = true })
	if serve(router, "POST", "/orders/42"); ran {
		t.Error("the handler has run without its lock")
	}
}

// The chain that is run in place of gin's has the name of its last handler, by which metrics and logs are kept.
func TestTheHandlerKeepsItsName(t *testing.T) {
	locker := locktest.New(t)
	router := gin.New()
	look := func(c *gin.Context) {
		before := c.HandlerName()
		c.Next()
		if after := c.HandlerName(); before != after || !strings.HasSuffix(after, ".ginHandler") {
			t.Errorf("before %s, after %s", before, after)
		}
	}
	guarded := ginlock.New(ginlock.Config{Locker: locker, Key: keyfunc.Param("id")})
	router.POST("/orders/:id", look, guarded, look, guarded, look, ginHandler)
	named = nil
	if w := serve(router, "POST", "/orders/42"); w.Code != http.StatusOK || len(named) != 1 || !strings.HasSuffix(named[0], ".ginHandler") {
		t.Errorf("status %d, in the handler %s", w.Code, named)
	}
}

var named []string // what gin has called ginHandler, in each of its runs

func ginHandler(c *gin.Context) {
	named = append(named, c.HandlerName())
	c.Next() // which is none
}

// A context that gin has made before any route had a parameter has no room for one, and some versions of gin leave it out.
func TestAParameterThatGinHasLeftOut(t *testing.T) {
	core.SetDefault(locktest.New(t))
	t.Cleanup(func() { core.SetDefault(nil) })
	router := gin.New()
	c := gin.CreateTestContextOnly(httptest.NewRecorder(), router)
	router.Use(ginlock.ByParam("id"))
	router.POST("/orders/:id", func(c *gin.Context) {
		if _, held := core.FromContext(c.Request.Context()); !held {
			t.Error("the handler has run without its lock")
		}
	})
	c.Request = httptest.NewRequest("POST", "/orders/42", nil)
	router.HandleContext(c)
}

// Middleware outside runs the chain in a goroutine, and waits for it. The guard ends the goroutine where the request is over,
// for it cannot know that somebody waits; gin then goes on with the chain.
func TestGinGoesOnAfterAGoroutineOfMiddleware(t *testing.T) {
	for _, when := range []string{"in the wait", "in the handlers", "in the handlers of a guard inside"} {
		synctest.Test(t, func(t *testing.T) {
			locker := locktest.New(t)
			router := gin.New()
			router.Use(func(c *gin.Context) {
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					c.Next()
				}()
				<-ended
			})
			router.Use(ginlock.New(ginlock.Config{Locker: locker, Key: keyfunc.Param("id")}))
			if when == "in the wait" {
				defer locktest.Hold(t, locker, "id=42")()
			} else {
				router.Use(func(c *gin.Context) { <-c.Request.Context().Done() })
			}
			if when == "in the handlers of a guard inside" {
				router.Use(ginlock.New(ginlock.Config{Locker: locker, Key: keyfunc.Const[keyfunc.Request]("inside")}))
			}
			router.POST("/orders/:id", func(*gin.Context) {}, func(*gin.Context) { t.Errorf("%s: the handler has run", when) })
			ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), http.ServerContextKey, new(http.Server)), time.Second)
			defer cancel()
			w := httptest.NewRecorder()
			router.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/orders/42", nil))
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("%s: status %d", when, w.Code)
			}
		})
	}
}
