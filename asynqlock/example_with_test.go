package asynqlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
)

// One Locker and the same options for all middleware, without globals: each test makes its own, and runs beside others.
func ExampleWith() {
	locker, stop := newLocker() // in a test: locktest.New(t)
	defer stop()
	locks := asynqlock.With(locker, asynqlock.OnBusy(asynqlock.Drop), core.KeepFor(time.Minute))

	orders, carts := asynq.NewServeMux(), asynq.NewServeMux()
	orders.Use(locks.ByPayload("orderID"))
	orders.HandleFunc("order:pay", showKey)
	carts.Use(locks.ByTemplate("cart:{payload.id}"))
	carts.HandleFunc("cart:buy", showKey)

	process(orders, "order:pay", `{"orderID":42}`)
	process(carts, "cart:buy", `{"id":7}`)
	process(carts, "cart:buy", `{"id":7}`)
	// Output:
	// order:pay under the lock "orderID=42"
	// cart:buy under the lock "cart:7"
	// error: asynqlock: the task did not run: revoke task: core: lock "cart:7" not acquired: it is in its dedup window
}

// A task whose key is busy is dropped: its work is being done.
func ExampleOnBusy() {
	locker, stop := newLocker()
	defer stop()
	held, err := locker.Lock(context.Background(), "orderID=42")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = held.Unlock(context.Background()) }()

	mux := asynq.NewServeMux()
	mux.Use(asynqlock.With(locker).ByPayload("orderID", asynqlock.OnBusy(asynqlock.Drop)))
	mux.HandleFunc("order:pay", showKey)

	process(mux, "order:pay", `{"orderID":42}`)
	// Output: error: asynqlock: the task did not run: revoke task: core: lock "orderID=42" not acquired: somebody else holds it
}
