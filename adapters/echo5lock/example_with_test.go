package echo5lock_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// One Locker and one error format for all middleware, without globals: each test makes its own, and runs beside others.
func ExampleWith() {
	locker, stop := newLocker() // in a test: locktest.New(t)
	defer stop()

	answer := func(c *echo.Context, err error) error {
		code, _ := echo5lock.ReasonOf(err)
		status, _ := echo5lock.StatusOf(err)
		return c.String(status, fmt.Sprintf("%s %q", code, echo5lock.PartOf(err)))
	}
	locks := echo5lock.With(locker, echo5lock.OnRefused(answer), core.NoWait(), core.KeepFor(time.Minute))

	e := echo.New()
	pay := func(c *echo.Context) error { return c.String(http.StatusOK, "paid") }
	e.POST("/orders/:orderID/pay", pay, locks.ByParam("orderID"))
	e.POST("/refunds", pay, locks.ByHeader("X-Refund-Id"))

	request(e, "POST", "/orders/42/pay")
	request(e, "POST", "/orders/42/pay")
	request(e, "POST", "/refunds?order=42")
	// Output:
	// 200 paid
	// 409 done ""
	// 400 missing "X-Refund-Id"
}

// A key of several parts, of which one is no number: the answer names it.
func ExamplePartOf() {
	locker, stop := newLocker()
	defer stop()

	locks := echo5lock.With(locker)
	key := keyfunc.Join(keyfunc.Param("cartID"), keyfunc.Int(keyfunc.Query("item")))
	e := echo.New()
	empty := func(*echo.Context) error { return nil }
	e.POST("/carts/:cartID", empty, locks.By(key))
	answer := func(c *echo.Context, err error) error {
		code, _ := echo5lock.ReasonOf(err)
		status, _ := echo5lock.StatusOf(err)
		return c.String(status, code+": "+echo5lock.PartOf(err))
	}
	e.POST("/own/:cartID", empty, locks.By(key, echo5lock.OnRefused(answer)))

	request(e, "POST", "/carts/7?item=two")
	request(e, "POST", "/own/7?item=two")
	// Output:
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"A part of the request is malformed.","code":"malformed","part":"item"}
	// 400 malformed: item
}
