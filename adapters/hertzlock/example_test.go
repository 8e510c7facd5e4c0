package hertzlock_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/alicebob/miniredis/v2"
	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/common/config"
	"github.com/cloudwego/hertz/pkg/common/ut"
	"github.com/cloudwego/hertz/pkg/route"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/adapters/hertzlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Of all requests for one order one at a time runs, in whichever process it arrives.
func ExampleBy() {
	embedded, err := miniredis.Run() // yours is a real one
	if err != nil {
		panic(err)
	}
	defer embedded.Close()
	client := redis.NewClient(&redis.Options{Addr: embedded.Addr()})
	defer client.Close()
	locker, err := core.New(client)
	if err != nil {
		panic(err)
	}
	defer locker.Close(context.Background())

	h := route.NewEngine(config.NewOptions(nil)) // yours is server.Default()
	perOrder := hertzlock.With(locker).By(keyfunc.Int(keyfunc.Param("orderID")))
	h.POST("/orders/:orderID/pay", perOrder, func(ctx context.Context, c *app.RequestContext) { // authenticate before perOrder
		lock, _ := core.FromContext(ctx)
		c.String(http.StatusOK, "paid under the lock %s", lock.Key())
	})

	for _, order := range []string{"042", "x"} {
		answer := ut.PerformRequest(h, "POST", "/orders/"+order+"/pay", nil).Result()
		fmt.Println(answer.StatusCode(), string(answer.Body()))
	}
	// Output:
	// 200 paid under the lock orderID=42
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"A part of the request is malformed.","code":"malformed","part":"orderID"}
}
