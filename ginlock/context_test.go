package ginlock

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/locktest"
)

// By default gin's c does not end with its request, and so not with the lock either.
func TestLogTellsOnceThatContextDoesNotEndWithTheLock(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))

	for _, fallback := range []bool{true, false} {
		contextTold.Store(false)
		log.Reset()
		engine := gin.New()
		engine.ContextWithFallback = fallback
		calls, ends := 0, false
		engine.POST("/orders/:orderID", ByParam("orderID", Locker(locktest.New(t))), func(c *gin.Context) {
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
