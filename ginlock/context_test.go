package ginlock

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

// By default gin's c does not end with its request, and so not with the lock either.
func TestLogTellsOnceThatContextDoesNotEndWithTheLock(t *testing.T) {
	var log bytes.Buffer
	logger := core.Logger(slog.New(slog.NewTextHandler(&log, nil)))
	for _, fallback := range []bool{true, false} {
		contextTold.Store(false)
		log.Reset()
		engine := gin.New()
		engine.ContextWithFallback = fallback
		calls, ends := 0, false
		engine.POST("/orders/:orderID", ByParam("orderID", Locker(locktest.New(t, logger))), func(c *gin.Context) {
			calls, ends = calls+1, c.Done() != nil
		})
		for range 2 {
			engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/orders/42", nil))
		}
		told := strings.Count(log.String(), "ContextWithFallback")
		if calls != 2 || ends != fallback || ends != (told == 0) || told > 1 {
			t.Errorf("ContextWithFallback %v: %d calls, c ends with the request: %v, told %d times", fallback, calls, ends, told)
		}
	}
}

// net/http goes on with the request that it has given: a handler that puts another one in its place
// does not change that one.
func TestRequestThatIsReplacedInside(t *testing.T) {
	engine := gin.New()
	var after *http.Request
	engine.Use(func(c *gin.Context) {
		c.Next()
		after = c.Request
	})
	engine.POST("/orders/:orderID", ByParam("orderID", Locker(locktest.New(t))), func(c *gin.Context) {
		c.Request = c.Request.Clone(c.Request.Context())
		c.Request.Method = http.MethodHead
	})
	given := httptest.NewRequest("POST", "/orders/42", nil)
	engine.ServeHTTP(httptest.NewRecorder(), given)
	if given.Method != "POST" || after.Method != http.MethodHead || after.Context() != given.Context() {
		t.Errorf("the server's request is by %s, that of the middleware outside by %s, want POST and HEAD", given.Method, after.Method)
	}
}
