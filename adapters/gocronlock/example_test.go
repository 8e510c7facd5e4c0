package gocronlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/adapters/gocronlock"
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

// All jobs run in the process that leads.
func ExampleElector() {
	locker, done := open()
	defer done()
	ctx, stop := context.WithCancel(context.Background())
	var elector gocronlock.Elector
	stopped := make(chan error)
	go func() { stopped <- elector.Run(ctx, locker, "scheduler") }()

	reports := make(chan string)
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(&elector))
	if err != nil {
		panic(err)
	}
	_, err = scheduler.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(func() { reports <- "the report" }),
		gocron.WithLimitedRuns(1))
	if err != nil {
		panic(err)
	}
	scheduler.Start()
	fmt.Println(<-reports)

	_ = scheduler.Shutdown() // waits for its jobs; then another process may lead
	stop()
	fmt.Println(<-stopped)
	// Output:
	// the report
	// context canceled
}

// Each job runs in the process that comes first, and not once more within the window.
func ExampleNewLocker() {
	locker, done := open()
	defer done()

	reports := make(chan string, 10)
	for range 3 { // processes
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronlock.NewLocker(locker, 45*time.Minute)))
		if err != nil {
			panic(err)
		}
		defer func() { _ = scheduler.Shutdown() }()
		_, err = scheduler.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(func() { reports <- "the report" }),
			gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartImmediately()))
		if err != nil {
			panic(err)
		}
		scheduler.Start()
	}
	fmt.Println(<-reports)
	// Output: the report
}

// The whole scheduler lives within the term of a leader: when leadership is lost its jobs are
// told by their context, and no other process leads before they are done, unless the lease is
// over.
func Example_schedulerOfTheLeader() {
	locker, done := open()
	defer done()
	errDone := errors.New("done for today")

	err := locker.Lead(context.Background(), "scheduler", func(ctx context.Context) error {
		scheduler, err := gocron.NewScheduler(gocron.WithStopTimeout(time.Minute))
		if err != nil {
			return err
		}
		finished := make(chan struct{})
		report := func(ctx context.Context) {
			lock, _ := core.FromContext(ctx)
			fmt.Println("the report of the leader of", lock.Key())
			close(finished)
		}
		_, err = scheduler.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(report),
			gocron.WithContext(ctx), gocron.WithLimitedRuns(1))
		if err != nil {
			return err
		}
		scheduler.Start()
		select {
		case <-ctx.Done():
			return scheduler.Shutdown() // waits for the jobs
		case <-finished:
			return errors.Join(scheduler.Shutdown(), errDone)
		}
	})
	fmt.Println(err)
	// Output:
	// the report of the leader of scheduler
	// done for today
}
