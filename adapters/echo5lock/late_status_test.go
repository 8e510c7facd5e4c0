package echo5lock_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/core"
)

// gone is the response to a client that resets the connection while it is written.
type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// c.JSON sets the Status of a response also when another one has left already.
func TestStatusSetAfterTheAnswerHasBegun(t *testing.T) {
	work := 0
	charge := func(c *echo.Context) error {
		work++
		return c.JSON(http.StatusOK, map[string]int{"charged": 42})
	}
	for name, build := range map[string]func(*echo.Echo){
		"a handler that answers an error of writing": func(e *echo.Echo) {
			e.Use(echo5lock.ByParam("orderID", core.NoWait(), core.KeepFor(time.Minute)))
			e.POST("/orders/:orderID/pay", func(c *echo.Context) error {
				if err := charge(c); err != nil {
					return c.JSON(http.StatusInternalServerError, map[string]string{"error": "cannot answer"})
				}
				return nil
			})
		},
		"an error handler that middleware inside calls, as echo's Logger does": func(e *echo.Echo) {
			e.HTTPErrorHandler = func(c *echo.Context, err error) {
				_ = c.JSON(http.StatusInternalServerError, map[string]string{"error": "sorry"})
			}
			e.Use(echo5lock.ByParam("orderID", core.NoWait(), core.KeepFor(time.Minute)))
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error {
					if err := next(c); err != nil {
						c.Echo().HTTPErrorHandler(c, err)
					}
					return nil
				}
			})
			e.POST("/orders/:orderID/pay", charge)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *core.Locker, _ *bytes.Buffer) {
				work = 0
				e := echo.New()
				build(e)
				for range 3 {
					e.ServeHTTP(gone{httptest.NewRecorder()}, httptest.NewRequest("POST", "/orders/42/pay", nil))
				}
				if work != 1 {
					t.Errorf("charged %d times", work)
				}
			})
		})
	}
}
