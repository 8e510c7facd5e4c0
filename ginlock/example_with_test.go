package ginlock_test

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// One Locker and one error format for all middleware, without globals: each test makes its own, and runs beside others.
func ExampleWith() {
	locker, stop := newLocker() // in a test: locktest.New(t)
	defer stop()

	answer := func(c *gin.Context, err error) { // the status is set
		code, _ := ginlock.ReasonOf(err)
		c.String(c.Writer.Status(), "%s %q", code, ginlock.PartOf(err))
	}
	locks := ginlock.With(locker, ginlock.OnRefused(answer), core.NoWait(), core.KeepFor(time.Minute))

	router := newRouter()
	pay := func(c *gin.Context) { c.String(http.StatusOK, "paid") }
	router.POST("/orders/:orderID/pay", locks.ByParam("orderID"), pay)
	router.POST("/refunds", locks.ByHeader("X-Refund-Id"), pay)

	request(router, "POST", "/orders/42/pay")
	request(router, "POST", "/orders/42/pay")
	request(router, "POST", "/refunds?order=42")
	// Output:
	// 200 paid
	// 409 done ""
	// 400 missing "X-Refund-Id"
}

// A key of several parts, of which one is no number: the answer names it.
func ExamplePartOf() {
	locker, stop := newLocker()
	defer stop()

	locks := ginlock.With(locker)
	key := keyfunc.Join(keyfunc.Param("cartID"), keyfunc.Int(keyfunc.Query("item")))
	router := newRouter()
	router.POST("/carts/:cartID", locks.By(key), func(*gin.Context) {})
	answer := func(c *gin.Context, err error) {
		code, _ := ginlock.ReasonOf(err)
		c.String(c.Writer.Status(), "%s: %s", code, ginlock.PartOf(err))
	}
	router.POST("/own/:cartID", locks.By(key, ginlock.OnRefused(answer)), func(*gin.Context) {})

	request(router, "POST", "/carts/7?item=two")
	request(router, "POST", "/own/7?item=two")
	// Output:
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"A part of the request is malformed.","code":"malformed","part":"item"}
	// 400 malformed: item
}
