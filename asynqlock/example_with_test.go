package asynqlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
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

// A task that was enqueued twice is done once; the second gets the result of the first.
func ExampleOnce() {
	locker, stop := newLocker()
	defer stop()
	mux := asynq.NewServeMux()
	mux.Use(asynqlock.With(locker).Once(keyfunc.Join(keyfunc.TaskType(), keyfunc.Payload("month")), core.KeepFor(24*time.Hour)))
	mux.HandleFunc("report:build", func(ctx context.Context, t *asynq.Task) error {
		fmt.Printf("building %s, attempt %d\n", t.Payload(), core.AttemptOf(ctx))
		return asynqlock.WriteResult(ctx, t, []byte("reports/2026-11.pdf"))
	})

	process(mux, "report:build", `{"month":"2026-11"}`)
	process(mux, "report:build", `{"month":"2026-11"}`)
	// Output: building {"month":"2026-11"}, attempt 1
}

// What a handler writes so is also the result of the tasks that [asynqlock.Once] skips.
func ExampleWriteResult() {
	build := func(ctx context.Context, t *asynq.Task) error {
		return asynqlock.WriteResult(ctx, t, []byte("reports/2026-11.pdf"))
	}
	fmt.Println(build(context.Background(), asynq.NewTask("report:build", nil))) // outside of a server nothing is written
	// Output: <nil>
}
