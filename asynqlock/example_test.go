package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// newLocker is a Locker on an embedded Redis. Yours is on a real one.
func newLocker() (locker *core.Locker, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	locker, err = core.New(client)
	if err != nil {
		panic(err)
	}
	return locker, func() {
		_ = locker.Close(context.Background())
		_ = client.Close()
		server.Close()
	}
}

// process does what an asynq.Server does with a task.
func process(mux *asynq.ServeMux, kind, payload string) {
	err := mux.ProcessTask(context.Background(), asynq.NewTask(kind, []byte(payload)))
	if err != nil {
		fmt.Println("error:", err)
	}
}

// showKey is a handler that shows under which lock it runs.
func showKey(ctx context.Context, t *asynq.Task) error {
	lock, _ := core.FromContext(ctx)
	fmt.Printf("%s under the lock %q\n", t.Type(), lock.Key())
	return nil
}

// Tasks of one order exclude one another, whatever their type.
func ExampleByPayload() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	mux := asynq.NewServeMux()
	mux.Use(asynqlock.ByPayload("orderID"))
	mux.HandleFunc("order:pay", func(ctx context.Context, t *asynq.Task) error {
		fmt.Println("paying")
		process(mux, "order:cancel", `{"orderID":42}`) // as another worker would
		return showKey(ctx, t)
	})
	mux.HandleFunc("order:cancel", showKey)

	process(mux, "order:pay", `{"orderID":42}`)
	process(mux, "order:cancel", `{"orderID":42}`)
	// Output:
	// paying
	// error: asynqlock: the task did not run: core: lock "orderID=42" not acquired: the wait of 1s is over, somebody else holds it
	// order:pay under the lock "orderID=42"
	// order:cancel under the lock "orderID=42"
}

// Tasks of one order and type exclude one another.
func ExampleByTemplate() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	mux := asynq.NewServeMux()
	mux.Use(asynqlock.ByTemplate("{type}:{payload.order.id}"))
	mux.HandleFunc("pay", showKey)

	process(mux, "pay", `{"order":{"id":42}}`)
	// Output: pay under the lock "pay:42"
}

// A key of several parts, with the number in one form. A task without a key is
// archived.
func ExampleBy() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	mux := asynq.NewServeMux()
	mux.Use(asynqlock.By(keyfunc.Join(
		keyfunc.Const[keyfunc.Task]("order"),
		keyfunc.Payload("tenant"),
		keyfunc.Int(keyfunc.Payload("orderID")),
	)))
	mux.HandleFunc("pay", showKey)

	process(mux, "pay", `{"tenant":"acme","orderID":"042"}`)
	process(mux, "pay", `{"orderID":"042"}`)
	// Output:
	// pay under the lock "order:tenant=acme:orderID=42"
	// error: asynqlock: no key for a task of type "pay": skip retry for the task: keyfunc: part 2, payload field "tenant": missing
}

// At most so many exports of a tenant at once as its plan has, in all workers together.
func ExampleConfig_permits() {
	locker, stop := newLocker()
	defer stop()

	plans := map[string]int{"acme": 2, "tiny": 1}
	tenant := keyfunc.Payload("tenantID")
	mux := asynq.NewServeMux()
	mux.Use(asynqlock.New(asynqlock.Config{
		Locker: locker,
		Key:    tenant,
		Permits: func(t *asynq.Task) int {
			name, _ := tenant(t)
			return plans[strings.TrimPrefix(name, "tenantID=")]
		},
		Options: []core.Option{core.NoWait()},
	}))
	mux.HandleFunc("export:first", func(ctx context.Context, t *asynq.Task) error {
		err := mux.ProcessTask(context.Background(), asynq.NewTask("export", t.Payload())) // as another worker would
		fmt.Println("another one refused:", errors.Is(err, core.ErrNoPermit))
		return nil
	})
	mux.HandleFunc("export", func(context.Context, *asynq.Task) error { return nil })

	process(mux, "export:first", `{"tenantID":"acme"}`)
	process(mux, "export:first", `{"tenantID":"tiny"}`)
	// Output:
	// another one refused: false
	// another one refused: true
}

// New has what the By functions leave out: here a job that is enqueued once more
// while it runs, or within a minute, is dropped.
func ExampleNew() {
	locker, stop := newLocker()
	defer stop()

	mux := asynq.NewServeMux()
	mux.Use(asynqlock.New(asynqlock.Config{
		Locker:  locker,
		Key:     keyfunc.TaskType(),
		Skip:    func(t *asynq.Task) bool { return t.Type() == "mail" },
		OnBusy:  asynqlock.Drop,
		Options: []core.Option{core.KeepFor(time.Minute)},
	}))
	mux.HandleFunc("report", showKey)
	mux.HandleFunc("mail", func(context.Context, *asynq.Task) error {
		fmt.Println("mail without a lock")
		return nil
	})

	process(mux, "report", "")
	process(mux, "report", "")
	process(mux, "mail", "")
	// Output:
	// report under the lock "taskType=report"
	// error: asynqlock: the task did not run: revoke task: core: lock "taskType=report" not acquired: it is in its dedup window
	// mail without a lock
}

// An order is shipped when nobody else is at work on any of its items.
func ExampleByAll() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	mux := asynq.NewServeMux()
	mux.Use(asynqlock.ByAll(keyfunc.PayloadEach("sku", "items", "sku"), core.NoWait()))
	mux.HandleFunc("order:ship", func(context.Context, *asynq.Task) error {
		fmt.Println("shipping")
		process(mux, "item:count", `{"items":[{"sku":"tea"}]}`) // as another worker would
		return nil
	})
	mux.HandleFunc("item:count", func(context.Context, *asynq.Task) error {
		fmt.Println("counting")
		return nil
	})

	process(mux, "order:ship", `{"items":[{"sku":"cup"},{"sku":"tea"}]}`)
	process(mux, "item:count", `{"items":[{"sku":"tea"}]}`)
	// Output:
	// shipping
	// error: asynqlock: the task did not run: core: lock "sku=tea" not acquired: somebody else holds it
	// counting
}

// Tasks of a hot key are parked, and run when it is their turn.
func ExampleConfig_inspector() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redisOpt := asynq.RedisClientOpt{Addr: server.Addr()}
	client, once := asynq.NewClient(redisOpt), redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	defer once.Close()
	defer client.Close()
	locker, err := core.Open(context.Background(), "redis://"+server.Addr())
	if err != nil {
		panic(err)
	}
	defer locker.Close(context.Background())

	const tasks = 20
	var paid sync.WaitGroup
	paid.Add(tasks)
	mux := asynq.NewServeMux()
	mux.Use(asynqlock.New(asynqlock.Config{
		Locker:            locker,
		Key:               keyfunc.Payload("orderID"),
		Inspector:         asynq.NewInspectorFromRedisClient(once),
		Workers:           4,
		TaskCheckInterval: 20 * time.Millisecond,
	}))
	mux.HandleFunc("order:pay", func(context.Context, *asynq.Task) error {
		paid.Done()
		return nil
	})
	worker := asynq.NewServer(redisOpt, asynq.Config{
		Concurrency:              4,
		TaskCheckInterval:        20 * time.Millisecond,
		DelayedTaskCheckInterval: 200 * time.Millisecond,
		IsFailure:                asynqlock.IsFailure(nil),
		RetryDelayFunc:           asynqlock.RetryDelay(nil),
		LogLevel:                 asynq.FatalLevel,
	})
	for range tasks {
		if _, err := client.Enqueue(asynq.NewTask("order:pay", []byte(`{"orderID":42}`))); err != nil {
			panic(err)
		}
	}
	if err := worker.Start(mux); err != nil {
		panic(err)
	}
	paid.Wait()
	worker.Shutdown()
	fmt.Println(tasks, "tasks of one order, one at a time")
	// Output: 20 tasks of one order, one at a time
}
