//go:build go1.25

package ginlock_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
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

func TestRefusalAbortsTheChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		router := gin.New()
		aborted := false
		router.Use(func(c *gin.Context) {
			c.Next()
			aborted = c.IsAborted()
		})
		router.GET("/", ginlock.New(ginlock.Config{Locker: locker, Key: keyfunc.Query("id")}),
			func(*gin.Context) { t.Error("the handler ran") })
		serve(router, "GET", "/")
		if !aborted {
			t.Error("the chain is not aborted")
		}
	})
}

// Middleware outside finds the refusal in c.Errors, in words that may be shown, and its
// cause.
func TestRefusalsAreInTheErrorsOfTheContext(t *testing.T) {
	locker := locktest.New(t, core.NoWait())
	locktest.Hold(t, locker, "orderID=s3cret")
	router := gin.New()
	var found []*gin.Error
	router.Use(func(c *gin.Context) {
		c.Next()
		found = c.Errors
	})
	router.Use(ginlock.New(ginlock.Config{Locker: locker, Param: "orderID"}))
	router.POST("/orders/:orderID", func(*gin.Context) { t.Error("the handler ran") })
	router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/orders/s3cret", nil))
	if len(found) != 1 || !errors.Is(found[0], core.ErrNotAcquired) {
		t.Fatalf("c.Errors: %v", found)
	}
	if want := "Another request for the same resource is being processed."; found[0].Error() != want {
		t.Errorf("it says %q, want %q", found[0], want)
	}
	if status, _ := ginlock.StatusOf(found[0]); status != http.StatusConflict {
		t.Errorf("status %d", status)
	}
}

// gin looks for errors of its own in what it is given: the cause must not come to light by
// that.
func TestErrorsOfTheContextHideTheCause(t *testing.T) {
	cause := &gin.Error{Err: errors.New("dial tcp 10.0.0.7:5432"), Type: gin.ErrorTypePublic}
	router := gin.New()
	var found []*gin.Error
	router.Use(func(c *gin.Context) {
		c.Next()
		found = c.Errors
	})
	router.Use(ginlock.New(ginlock.Config{Locker: locktest.New(t), Key: func(keyfunc.Request) (string, error) {
		return "", fmt.Errorf("tenant: %w", cause)
	}}))
	router.POST("/orders", func(*gin.Context) { t.Error("the handler ran") })
	serve(router, "POST", "/orders")
	if len(found) != 1 || found[0].Error() != "A part of the request is malformed." || !errors.Is(found[0], cause) {
		t.Errorf("c.Errors: %v", found)
	}
}

// Whom no route matches is no fault of the set-up, and not worth a line in the log as one.
func TestUnmatchedRequestsAreNotSetUpWrongly(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	router := gin.New()
	router.Use(ginlock.New(ginlock.Config{Locker: locktest.New(t), Key: keyfunc.Param("orderID")}))
	router.POST("/orders", func(*gin.Context) { t.Error("the handler ran") })
	for path, want := range map[string]int{"/orders": 500, "/nothing": 400} {
		log.Reset()
		if w := serve(router, "POST", path); w.Code != want || strings.Contains(log.String(), "misconfigured") != (want == 500) {
			t.Errorf("%s: %d, logged %s", path, w.Code, log.String())
		}
	}
}
