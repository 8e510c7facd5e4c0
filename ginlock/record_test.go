package ginlock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// Middleware outside has its writer back, and an answer is kept with the header with which it began.
func TestRecordedWriter(t *testing.T) {
	locker := locktest.New(t)
	router := gin.New()
	router.Use(func(c *gin.Context) {
		before := c.Writer
		c.Next()
		if c.Writer != before {
			t.Error("the writer is another one afterwards")
		}
	})
	runs := 0
	router.POST("/", ginlock.Idempotent(keyfunc.Header("X-User"), ginlock.Locker(locker)), func(c *gin.Context) {
		runs++
		c.Header("Location", "/42")
		c.AbortWithStatus(http.StatusCreated)
		c.Header("Location", "too late")
	})
	for range 2 {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("X-User", "u7")
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if got := w.Result(); got.StatusCode != http.StatusCreated || got.Header.Get("Location") != "/42" {
			t.Errorf("%d, %q", got.StatusCode, got.Header)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}
