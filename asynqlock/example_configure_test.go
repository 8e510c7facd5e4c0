package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
)

func ExampleIsFailure() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	isFailure := asynqlock.IsFailure(nil)
	config := asynq.Config{
		IsFailure:      isFailure,
		RetryDelayFunc: asynqlock.RetryDelay(nil),
		// asynq reports every error here. A task that was put off is none to report.
		ErrorHandler: asynq.ErrorHandlerFunc(func(_ context.Context, t *asynq.Task, err error) {
			if isFailure(err) {
				fmt.Println("failed:", t.Type(), err)
			}
		}),
	}

	guard := asynqlock.ByPayload("orderID", core.NoWait())
	task := asynq.NewTask("order:pay", []byte(`{"orderID":42}`))
	pay := asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		busy := guard(asynq.HandlerFunc(showKey)).ProcessTask(context.Background(), t)
		config.ErrorHandler.HandleError(ctx, t, busy)
		fmt.Println("busy:", isFailure(busy))
		return errors.New("no money")
	})
	config.ErrorHandler.HandleError(context.Background(), task, guard(pay).ProcessTask(context.Background(), task))
	// Output:
	// busy: false
	// failed: order:pay no money
}

// One call makes all settings of the server. What it has already stays.
func ExampleConfigure() {
	config := asynq.Config{Concurrency: 10, TaskCheckInterval: time.Second}
	asynqlock.Configure(&config)
	fmt.Println(config.DelayedTaskCheckInterval, config.TaskCheckInterval)
	fmt.Println(config.IsFailure(errors.New("no money")), config.RetryDelayFunc != nil)
	// Output:
	// 200ms 1s
	// true true
}

// Tasks of several kinds in one worker: those of orders are guarded, and one that has no order is
// archived. The others do not know of the lock.
func ExampleLocker() {
	locker, stop := newLocker()
	defer stop()

	orders := asynq.NewServeMux()
	orders.Use(asynqlock.ByPayload("orderID", asynqlock.Locker(locker)))
	orders.HandleFunc("order:pay", showKey)

	mux := asynq.NewServeMux()
	mux.Handle("order:", orders) // all types that begin with it
	mux.HandleFunc("mail", func(context.Context, *asynq.Task) error {
		fmt.Println("mail without a lock")
		return nil
	})

	process(mux, "order:pay", `{"orderID":42}`)
	process(mux, "order:pay", `{"order":42}`)
	process(mux, "mail", `{}`)
	// Output:
	// order:pay under the lock "orderID=42"
	// error: asynqlock: no key for a task of type "order:pay": skip retry for the task: keyfunc: payload field "orderID": missing
	// mail without a lock
}

func ExampleRetryDelay() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	delay := asynqlock.RetryDelay(func(retried int, err error, t *asynq.Task) time.Duration {
		return time.Hour // for failures
	})
	guard := asynqlock.ByPayload("orderID", core.NoWait())
	task := asynq.NewTask("order:pay", []byte(`{"orderID":42}`))
	pay := asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		again := guard(asynq.HandlerFunc(showKey)).ProcessTask(context.Background(), t)
		fmt.Println("busy: within a second:", delay(0, again, t) < time.Second)
		return errors.New("no money")
	})
	err := guard(pay).ProcessTask(context.Background(), task)
	fmt.Println("no money:", delay(0, err, task))
	// Output:
	// busy: within a second: true
	// no money: 1h0m0s
}
