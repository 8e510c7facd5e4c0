package ginlock_test

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// A payment that is sent again is not made again.
func ExampleIdempotent() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	authenticate := func(c *gin.Context) { c.Set("userID", "u7") }
	payments := 0
	router := gin.New()
	router.POST("/payments", authenticate, ginlock.Idempotent(keyfunc.Value("userID")), func(c *gin.Context) {
		payments++
		c.String(http.StatusCreated, "payment %d", payments)
	})

	request(router, "POST", "/payments", "Idempotency-Key", "a")
	request(router, "POST", "/payments", "Idempotency-Key", "a")
	request(router, "POST", "/payments", "Idempotency-Key", "b")
	fmt.Println(payments, "payments")
	// Output:
	// 201 payment 1
	// 201 payment 1
	// 201 payment 2
	// 2 payments
}
