package connectlock_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"connectrpc.com/connect"
	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/latchkey-go/latchkey/adapters/connectlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Of all payments of one order one at a time runs, in whichever process it arrives.
func ExampleBy() {
	embedded, err := miniredis.Run() // yours is a real one
	if err != nil {
		panic(err)
	}
	defer embedded.Close()
	redisClient := redis.NewClient(&redis.Options{Addr: embedded.Addr()})
	defer redisClient.Close()
	locker, err := core.New(redisClient)
	if err != nil {
		panic(err)
	}
	defer locker.Close(context.Background())

	type Pay = connectlock.Call[*wrapperspb.StringValue] // the request of your procedure
	order := func(c Pay) (string, error) { return c.Message.GetValue(), nil }
	const procedure = "/test.Orders/Pay" // a constant of the generated code
	perOrder := connectlock.By(locker, procedure, keyfunc.Named("orderID", keyfunc.Int(order)))

	handler := connect.NewUnaryHandler(procedure,
		func(ctx context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.Int64Value], error) {
			lock, _ := core.FromContext(ctx)
			fmt.Println("paid under the lock", lock.Key())
			return connect.NewResponse(wrapperspb.Int64(1)), nil
		}, connect.WithInterceptors(perOrder)) // after authentication
	server := httptest.NewServer(handler)
	defer server.Close()

	client := connect.NewClient[wrapperspb.StringValue, wrapperspb.Int64Value](http.DefaultClient, server.URL+procedure)
	defer http.DefaultClient.CloseIdleConnections()
	for _, id := range []string{"042", "x"} {
		_, err := client.CallUnary(context.Background(), connect.NewRequest(wrapperspb.String(id)))
		fmt.Println(err)
	}
	// Output:
	// paid under the lock orderID=42
	// <nil>
	// invalid_argument: a required part of the request is missing or malformed
}
