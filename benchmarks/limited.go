package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynq/x/rate"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// limited is the row of jobs of which so many may run at once, in all processes together: what the
// limit costs where there are not more workers than that.
func limited(most, processes, workers int, work time.Duration) row {
	return row{
		name: fmt.Sprintf("limit-%d", most),
		title: fmt.Sprintf("Jobs of %v through asynq, %d processes of %d workers, at most %d jobs at once",
			work, processes, workers, most),
		libraries: []string{bareName, latchkeyName, asynqRateName},
		base:      bareName,
		columns:   []figure{jobsPerSecond, waitP50, waitP99, waitMax, redisCPU},
		measure: func(ctx context.Context, b *bench, lib library) (f figures, err error) {
			queue := asynq.NewClient(asynq.RedisClientOpt{Addr: b.server.Addr()})
			defer func() { err = errors.Join(err, queue.Close()) }()
			for range 2 * processes * workers { // each is followed by another one: as many wait as run
				if err := enqueueJob(queue); err != nil {
					return nil, err
				}
			}
			var orders []order
			for n := range processes {
				orders = append(orders, order{
					Job: "work", Library: lib.name, Addr: b.server.Addr(), Number: n,
					Goroutines: workers, Section: section{Sleep: work}, Wants: wants{Permits: most},
				})
			}
			c, err := b.contest(ctx, orders)
			if err != nil {
				return nil, err
			}
			left, err := waitsOfJobsLeft(b.server.Addr(), c.window.ended)
			if err != nil {
				return nil, err
			}
			c.tallies = append(c.tallies, tally{Waits: left})
			f = c.figures(lib)
			f[jobsPerSecond] = f[cyclesPerSecond]
			// What asynq sends by itself is no library's, and its jobs are in no fixed order.
			for _, what := range []figure{commandsPer, fairness, neverServed} {
				delete(f, what)
			}
			return f, nil
		},
	}
}

// enqueueJob enqueues one that knows since when it waits.
func enqueueJob(queue *asynq.Client) error {
	_, err := queue.Enqueue(asynq.NewTask("job", strconv.AppendInt(nil, monotonic(), 10)))
	return err
}

func waitOf(job []byte, now int64) (time.Duration, error) {
	since, err := strconv.ParseInt(string(job), 10, 64)
	return time.Duration(now - since), err
}

// waitsOfJobsLeft are those of jobs that have never begun, with the time until the end of the
// round: a job that was put off and forgotten must show.
func waitsOfJobsLeft(addr string, end int64) (waits []time.Duration, err error) {
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: addr})
	defer func() { err = errors.Join(err, inspector.Close()) }()
	for _, list := range []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
		inspector.ListPendingTasks, inspector.ListScheduledTasks, inspector.ListRetryTasks,
	} {
		left, err := list("default", asynq.PageSize(1000))
		if err != nil {
			return nil, err
		}
		for _, job := range left {
			d, err := waitOf(job.Payload, end)
			if err != nil {
				return nil, err
			}
			waits = append(waits, d)
		}
	}
	return waits, nil
}

// work is what each of the processes does: a server of asynq.
func work(o order, lib library, a *arena, ready func(), end <-chan struct{}) (any, error) {
	limit, err := openLimit(lib.name, o)
	if err != nil {
		return nil, err
	}
	queue := asynq.NewClient(asynq.RedisClientOpt{Addr: o.Addr})
	at := o.Wants.spots(a, 0)[0]
	var mu sync.Mutex
	var done tally
	note := func(err error, wait time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			done.failed(err)
		case a.phase.Load() == measuring:
			done.Cycles++
			done.Waits = append(done.Waits, wait)
		}
	}
	guarded := limit.middleware(asynq.HandlerFunc(func(_ context.Context, job *asynq.Task) error {
		wait, err := waitOf(job.Payload(), monotonic())
		a.enter(at)
		o.Section.run()
		a.leave(at)
		note(err, wait)
		return err
	}))
	config := asynq.Config{Concurrency: o.Goroutines, LogLevel: asynq.FatalLevel, IsFailure: limit.isFailure, RetryDelayFunc: limit.retryDelay}
	asynqlock.Configure(&config) // its looks for tasks are for all alike
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: o.Addr}, config)
	ready()
	err = server.Start(asynq.HandlerFunc(func(ctx context.Context, job *asynq.Task) error {
		err := guarded.ProcessTask(ctx, job)
		switch {
		case err == nil && a.phase.Load() != over:
			err = enqueueJob(queue)
		case err != nil && !config.IsFailure(err):
			return err // it comes again
		}
		if err != nil {
			note(err, 0)
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	<-end
	server.Shutdown()
	return []tally{done}, errors.Join(queue.Close(), limit.close())
}

// limit lets so many jobs run, in all processes together.
type limit struct {
	middleware asynq.MiddlewareFunc
	isFailure  func(error) bool     // unless nil; beside asynqlock's
	retryDelay asynq.RetryDelayFunc // the same
	close      func() error
}

func openLimit(name string, o order) (limit, error) {
	switch name {
	case latchkeyName:
		l, err := openLatchkey(o.Addr)
		if err != nil {
			return limit{}, err
		}
		options := []core.Option{core.Permits(o.Wants.Permits)}
		return limit{
			middleware: asynqlock.New(asynqlock.Config{Locker: l.locker, Key: keyfunc.TaskType(), Options: options}),
			close:      l.close,
		}, nil
	case asynqRateName:
		return openRateLimit(o), nil
	}
	return limit{
		middleware: func(next asynq.Handler) asynq.Handler { return next },
		close:      func() error { return nil },
	}, nil
}

var errRateLimited = errors.New("asynq-rate: as many run as may")

// openRateLimit is the semaphore of asynq's x/rate, as in its example. A job that gets no permit
// comes again when asynq looks next.
func openRateLimit(o order) limit {
	semaphore := rate.NewSemaphore(asynq.RedisClientOpt{Addr: o.Addr}, "job", o.Wants.Permits)
	return limit{
		middleware: func(next asynq.Handler) asynq.Handler {
			return asynq.HandlerFunc(func(ctx context.Context, job *asynq.Task) error {
				ok, err := semaphore.Acquire(ctx)
				if err != nil {
					return err
				}
				if !ok {
					return errRateLimited
				}
				defer semaphore.Release(ctx) //nolint:errcheck // as in its example
				return next.ProcessTask(ctx, job)
			})
		},
		isFailure:  func(err error) bool { return !errors.Is(err, errRateLimited) },
		retryDelay: func(int, error, *asynq.Task) time.Duration { return 0 },
		close:      semaphore.Close,
	}
}
