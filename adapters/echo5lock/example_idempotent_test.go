package echo5lock_test

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// A payment that is sent again is not made again.
func ExampleIdempotent() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	authenticate := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			c.Set("userID", "u7")
			return next(c)
		}
	}
	payments := 0
	e := echo.New()
	e.POST("/payments", func(c *echo.Context) error {
		payments++
		return c.String(http.StatusCreated, fmt.Sprintf("payment %d", payments))
	}, authenticate, echo5lock.Idempotent(keyfunc.Value("userID")))

	request(e, "POST", "/payments", "Idempotency-Key", "a")
	request(e, "POST", "/payments", "Idempotency-Key", "a")
	request(e, "POST", "/payments", "Idempotency-Key", "b")
	fmt.Println(payments, "payments")
	// Output:
	// 201 payment 1
	// 201 payment 1
	// 201 payment 2
	// 2 payments
}
