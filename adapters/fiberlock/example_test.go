package fiberlock_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"

	"github.com/alicebob/miniredis/v2"
	"github.com/gofiber/fiber/v3"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/adapters/fiberlock"
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

	app := fiber.New()
	perOrder := fiberlock.With(locker).By(keyfunc.Int(keyfunc.Param("orderID")))
	app.Post("/orders/:orderID/pay", perOrder, func(c fiber.Ctx) error { // authenticate before perOrder
		lock, _ := core.FromContext(c.Context())
		return c.SendString("paid under the lock " + lock.Key())
	})

	for _, order := range []string{"042", "x"} {
		answer, err := app.Test(httptest.NewRequest("POST", "/orders/"+order+"/pay", nil))
		if err != nil {
			panic(err)
		}
		text, _ := io.ReadAll(answer.Body)
		fmt.Println(answer.StatusCode, string(text))
	}
	// Output:
	// 200 paid under the lock orderID=42
	// 400 A part of the request is malformed.
}
