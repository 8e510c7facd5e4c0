package riverlock_test

import (
	"context"
	"database/sql"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	_ "modernc.org/sqlite"

	"github.com/latchkey-go/latchkey/adapters/riverlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

// ends are the events of a run.
var ends = []river.EventKind{
	river.EventKindJobSnoozed, river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobCancelled,
}

type payArgs struct {
	OrderID int `json:"orderID"`
}

func (payArgs) Kind() string { return "pay" }

type payWorker struct {
	river.WorkerDefaults[payArgs]
	work func(ctx context.Context) error
}

func (w *payWorker) Work(ctx context.Context, _ *river.Job[payArgs]) error { return w.work(ctx) }

// newClient returns a client of River that runs, on an SQLite database in memory.
func newClient(tb testing.TB, m rivertype.Middleware, work func(context.Context) error) *river.Client[*sql.Tx] {
	tb.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	tb.Cleanup(func() { _ = db.Close() })
	driver, logger := riversqlite.New(db), slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: logger})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := migrator.Migrate(context.Background(), rivermigrate.DirectionUp, nil); err != nil {
		tb.Fatal(err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &payWorker{work: work})
	client, err := river.NewClient(driver, &river.Config{
		Logger:            logger,
		Middleware:        []rivertype.Middleware{m},
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		FetchCooldown:     5 * time.Millisecond,
		FetchPollInterval: 10 * time.Millisecond,
		TestOnly:          true,
		Workers:           workers,
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := client.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := client.Stop(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return client
}

func insert(tb testing.TB, client *river.Client[*sql.Tx]) {
	tb.Helper()
	if _, err := client.Insert(context.Background(), payArgs{42}, nil); err != nil {
		tb.Fatal(err)
	}
}

// await returns the next event.
func await(tb testing.TB, events <-chan *river.Event) *river.Event {
	tb.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(2 * time.Minute):
		tb.Fatal("no event of River's for 2 minutes")
		return nil
	}
}

// In a client of River a busy key uses up no attempt of a job, which runs when the key is free.
func TestClientSnoozesWithoutUsingUpAnAttempt(t *testing.T) {
	locker := locktest.New(t)
	client := newClient(t, riverlock.With(locker, core.NoWait()).ByPayload("orderID"), func(context.Context) error { return nil })
	events, cancel := client.Subscribe(ends...)
	defer cancel()
	release := locktest.Hold(t, locker, key)
	insert(t, client)

	isSnoozed := func(e *river.Event) bool { // the event of a short snooze is JobFailed before River 0.25
		if len(e.Job.Errors) > 0 {
			return false
		}
		return e.Kind != river.EventKindJobCompleted && e.Job.State == rivertype.JobStateAvailable && e.Job.Attempt == 0
	}
	e := await(t, events)
	if !isSnoozed(e) {
		t.Errorf("%s, %s, attempt %d, errors %v", e.Kind, e.Job.State, e.Job.Attempt, e.Job.Errors)
	}
	release()
	for isSnoozed(e) {
		e = await(t, events)
	}
	if e.Kind != river.EventKindJobCompleted || e.Job.Attempt != 1 || len(e.Job.Errors) != 0 {
		t.Errorf("%s, attempt %d, errors %v", e.Kind, e.Job.Attempt, e.Job.Errors)
	}
}

// Jobs of a key that are inserted together run one after another.
func TestClientRunsOneJobOfAKeyAtATime(t *testing.T) {
	locker := locktest.New(t)
	var running, most atomic.Int64
	m := riverlock.With(locker, core.Wait(time.Minute), core.MaxWaiters(10)).ByPayload("orderID")
	client := newClient(t, m, func(ctx context.Context) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		inner, err := locker.Lock(ctx, key) // a round trip to Redis
		if err != nil {
			return err
		}
		return inner.Unlock(ctx)
	})
	events, cancel := client.Subscribe(ends...)
	defer cancel()
	const jobs = 10
	for range jobs {
		insert(t, client)
	}
	for range jobs {
		if e := await(t, events); e.Kind != river.EventKindJobCompleted {
			t.Errorf("%s: %v", e.Kind, e.Job.Errors)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d at once", most.Load())
	}
}

// A job without the field is retried, and so is one that loses its lock.
func TestClientRetriesWithoutAKeyAndAfterALoss(t *testing.T) {
	locker := locktest.New(t)
	client := newClient(t, riverlock.With(locker).ByPayload("tenant"), func(context.Context) error { return nil })
	events, cancel := client.Subscribe(river.EventKindJobCancelled, river.EventKindJobFailed, river.EventKindJobCompleted)
	defer cancel()
	insert(t, client)
	if e := await(t, events); e.Kind != river.EventKindJobFailed || e.Job.Attempt != 1 {
		t.Errorf("%s at attempt %d", e.Kind, e.Job.Attempt)
	}

	client = newClient(t, riverlock.With(locker).ByPayload("orderID"), func(ctx context.Context) error {
		locktest.Lose(t, locker, key)
		<-ctx.Done()
		return nil
	})
	events, cancel = client.Subscribe(river.EventKindJobCancelled, river.EventKindJobFailed, river.EventKindJobCompleted)
	defer cancel()
	insert(t, client)
	e := await(t, events)
	if e.Kind != river.EventKindJobFailed || e.Job.State != rivertype.JobStateAvailable && e.Job.State != rivertype.JobStateRetryable {
		t.Errorf("%s, %s", e.Kind, e.Job.State)
	}
}
