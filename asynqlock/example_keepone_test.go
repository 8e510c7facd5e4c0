package asynqlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
)

// The search index of a tenant is built anew when its data has changed. Of ten changes during a run nine tasks are dropped,
// and one more run sees them all.
func ExampleOnBusy_keepOne() {
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

	queue := asynq.NewClientFromRedisClient(client)
	changed := func() {
		if _, err := queue.Enqueue(asynq.NewTask("reindex", []byte(`{"tenantID":7}`))); err != nil {
			panic(err)
		}
	}
	data, built, dropped := 1, make(chan int), make(chan bool, 10)
	mux := asynq.NewServeMux()
	mux.Use(asynqlock.With(locker, asynqlock.OnBusy(asynqlock.KeepOne)).ByPayload("tenantID"))
	mux.HandleFunc("reindex", func(context.Context, *asynq.Task) error {
		version := data
		if version == 1 {
			data = 11
			for range 10 {
				changed()
			}
			for range 9 {
				<-dropped
			}
		}
		built <- version
		return nil
	})
	config := asynq.Config{Concurrency: 10, LogLevel: asynq.FatalLevel}
	asynqlock.Configure(&config)
	config.ErrorHandler = asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
		if errors.Is(err, asynq.RevokeTask) {
			dropped <- true
		}
	})
	worker := asynq.NewServerFromRedisClient(client, config)
	if err := worker.Start(mux); err != nil {
		panic(err)
	}
	defer worker.Shutdown()

	changed()
	fmt.Println("built from version", <-built)
	fmt.Println("built from version", <-built)
	// Output:
	// built from version 1
	// built from version 11
}
