package echo5lock_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// An error handler is asked inside only where there is no answer yet.
func TestErrorAfterTheAnswer(t *testing.T) {
	locker := locktest.New(t)
	e := echo.New()
	calls := 0
	e.HTTPErrorHandler = func(c *echo.Context, err error) { calls++ }
	e.POST("/", func(c *echo.Context) error {
		return errors.Join(c.String(http.StatusCreated, "paid"), errors.New("and then something else"))
	}, echo5lock.Idempotent(keyfunc.Header("X-User"), echo5lock.Locker(locker)))
	for range 2 {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("X-User", "u7")
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code != http.StatusCreated || w.Body.String() != "paid" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if calls != 1 { // by echo, for the first request
		t.Errorf("the error handler was called %d times", calls)
	}
}
