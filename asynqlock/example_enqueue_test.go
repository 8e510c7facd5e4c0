package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// A request takes the lock of an order, and hands it over to the task that it starts. Nobody else
// has it before the task is done.
func ExampleEnqueue() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	defer client.Close()
	locker, err := core.New(client)
	if err != nil {
		panic(err)
	}
	defer locker.Close(context.Background())
	core.SetDefault(locker)

	// The request, or a handler behind ginlock.ByParam("orderID").
	jobs := asynq.NewClientFromRedisClient(client)
	err = locker.Do(context.Background(), "orderID=42", func(ctx context.Context) error {
		lock, _ := core.FromContextKey(ctx, "orderID=42")
		task := asynq.NewTask("order:pay", []byte(`{"orderID":42}`))
		_, err := asynqlock.Enqueue(ctx, jobs, lock, task, 10*time.Minute)
		return err
	})
	_, busy := locker.TryLock(context.Background(), "orderID=42")
	fmt.Println("the request is done:", err)
	fmt.Println("others are refused:", errors.Is(busy, core.ErrNotAcquired))

	// The worker.
	mux := asynq.NewServeMux()
	mux.Use(asynqlock.ByPayload("orderID"))
	mux.HandleFunc("order:pay", func(context.Context, *asynq.Task) error {
		fmt.Println("the worker pays")
		return nil
	})
	worker := asynq.NewServerFromRedisClient(client, asynq.Config{
		IsFailure:      asynqlock.IsFailure(nil),
		RetryDelayFunc: asynqlock.RetryDelay(nil),
		LogLevel:       asynq.FatalLevel,
	})
	if err := worker.Start(mux); err != nil {
		panic(err)
	}
	defer worker.Shutdown()

	err = locker.Do(context.Background(), "orderID=42", func(context.Context) error {
		fmt.Println("then the next one has the lock")
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// the request is done: <nil>
	// others are refused: true
	// the worker pays
	// then the next one has the lock
}

// A worker that guards by another key than ByPayload's shares its key function with Enqueue.
func ExampleTaskKey() {
	locker, stop := newLocker()
	defer stop()

	key, err := keyfunc.TaskTemplate("invoice:{payload.id}")
	if err != nil {
		panic(err)
	}
	_ = asynqlock.By(key) // in the worker

	err = locker.Do(context.Background(), "invoice:42", func(ctx context.Context) error {
		lock, _ := core.FromContextKey(ctx, "invoice:42")
		task := asynq.NewTask("invoice:send", []byte(`{"id":43}`))
		_, err := asynqlock.Enqueue(ctx, nil, lock, task, time.Minute, asynqlock.TaskKey(key))
		return err
	})
	fmt.Println(err)
	// Output:
	// asynqlock: Enqueue: the lock is that of "invoice:42", but the task's own key is "invoice:43": hand over its lock, by core.FromContextKey
}
