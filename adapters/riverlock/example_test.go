package riverlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/latchkey-go/latchkey/adapters/riverlock"
	"github.com/latchkey-go/latchkey/core"
)

// open returns a Locker on an embedded Redis; yours is a real one.
func open() (locker *core.Locker, done func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	if locker, err = core.New(client); err != nil {
		panic(err)
	}
	return locker, func() {
		_ = locker.Close(context.Background())
		_ = client.Close()
		server.Close()
	}
}

// exportArgs are those of a job.
type exportArgs struct {
	TenantID string `json:"tenant_id"`
}

func (exportArgs) Kind() string { return "export" }

type exportWorker struct {
	river.WorkerDefaults[exportArgs]
}

func (w *exportWorker) Work(ctx context.Context, job *river.Job[exportArgs]) error {
	lock, _ := core.FromContext(ctx)
	fmt.Println("exporting under the lock", lock.Key())
	return nil
}

// Of all jobs of a tenant one runs at a time. The database is SQLite here; yours is PostgreSQL.
func ExampleWith() {
	locker, done := open()
	defer done()
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	driver, logger := riversqlite.New(db), slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: logger})
	if err != nil {
		panic(err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		panic(err)
	}

	workers := river.NewWorkers()
	river.AddWorker(workers, &exportWorker{})
	client, err := river.NewClient(driver, &river.Config{
		Logger:     logger,
		Middleware: []rivertype.Middleware{riverlock.With(locker).ByPayload("tenant_id")},
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		TestOnly:   true, // not yours
		Workers:    workers,
	})
	if err != nil {
		panic(err)
	}
	completed, cancel := client.Subscribe(river.EventKindJobCompleted)
	defer cancel()
	if err := client.Start(ctx); err != nil {
		panic(err)
	}
	if _, err := client.Insert(ctx, exportArgs{"acme"}, nil); err != nil {
		panic(err)
	}
	<-completed
	if err := client.Stop(ctx); err != nil {
		panic(err)
	}
	// Output: exporting under the lock tenant_id=acme
}

// A job whose key is busy is snoozed: River runs it again, and counts no attempt.
func ExampleByPayload() {
	locker, done := open()
	defer done()
	core.SetDefault(locker)
	defer core.SetDefault(nil)
	held, err := locker.Lock(context.Background(), "tenant_id=acme")
	if err != nil {
		panic(err)
	}
	defer func() { _ = held.Unlock(context.Background()) }()

	middleware := riverlock.ByPayload("tenant_id", core.NoWait())
	job := &rivertype.JobRow{Kind: "export", EncodedArgs: []byte(`{"tenant_id":"acme"}`)} // River's
	err = middleware.Work(context.Background(), job, func(context.Context) error { return nil })

	var snooze *river.JobSnoozeError
	fmt.Println("snoozed:", errors.As(err, &snooze) && snooze.Duration < 2*time.Second)
	fmt.Println("because the key is busy:", errors.Is(err, core.ErrNotAcquired))
	// Output:
	// snoozed: true
	// because the key is busy: true
}
