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

// gin's HandleContext puts gin's own writer in the place of the guard's: what is written by that is not recorded.
func TestHandleContextIsNotSentAgain(t *testing.T) {
	locker := locktest.New(t)
	router := gin.New()
	router.POST("/receipt", func(c *gin.Context) { c.String(http.StatusCreated, "paid") })
	router.POST("/empty", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	router.POST("/", ginlock.Idempotent(keyfunc.Header("X-User"), ginlock.Locker(locker)), func(c *gin.Context) {
		c.Request.URL.Path = c.Query("to")
		router.HandleContext(c)
	})
	for path, want := range map[string]int{"/receipt": http.StatusCreated, "/empty": http.StatusNoContent} {
		for _, status := range []int{want, http.StatusConflict, http.StatusConflict} {
			r := httptest.NewRequest("POST", "/?to="+path, nil)
			r.Header.Set("X-User", "u7")
			r.Header.Set("Idempotency-Key", path)
			w := httptest.NewRecorder()
			router.ServeHTTP(w, r)
			if w.Code != status {
				t.Errorf("%s: status %d, want %d; body %q", path, w.Code, status, w.Body)
			}
		}
	}
}
