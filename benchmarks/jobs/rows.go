package main

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/bsm/redislock"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// row is one way to guard tasks.
type row struct {
	name, title string
	// open returns the middleware of a process, and how refusals are told and retried.
	open func(p process) (guarded, error)
	// looks are how often asynq looks for tasks.
	looks looks
	// permits is how many tasks of a key may run at once; 0: one.
	permits int
	// processes is in how many the workers are, as many in each; 0: one.
	processes int
}

// process is one with a server.
type process struct {
	locks, queue *redis.Client
	once         *redis.Client // sends no command again
	workers      int
	looks        looks
}

type looks struct{ delayed, pending time.Duration }

var (
	quickLooks = looks{delayed: 200 * time.Millisecond, pending: 100 * time.Millisecond} // as docs/jobs.md says
	slowLooks  = looks{delayed: time.Second, pending: time.Second}                       // asynq's default for pending tasks
	busyLooks  = looks{delayed: 200 * time.Millisecond, pending: 20 * time.Millisecond}
)

type guarded struct {
	middleware asynq.MiddlewareFunc
	isFailure  func(error) bool
	delay      asynq.RetryDelayFunc
	close      func()
}

var rows = []row{
	{name: "none", title: "no lock", open: openNone, looks: quickLooks},
	{name: "none20", title: "no lock, looks each 20 ms", open: openNone, looks: busyLooks},
	{name: "redislock", title: "redislock, by hand", open: openRedislock, looks: quickLooks},
	{name: "nowait", title: "`NoWait`, back within 1 s, looks each second", open: latchkey(withinASecond, core.NoWait()), looks: slowLooks},
	{name: "wait200ms", title: "`Wait(200ms)`, the same", open: latchkey(withinASecond, core.Wait(200*time.Millisecond), noBound), looks: slowLooks},
	{name: "wait1s", title: "`Wait(1s)`, no bound on waiters", open: latchkey(nil, core.Wait(time.Second), noBound), looks: quickLooks},
	{name: "default", title: "**default**", open: latchkey(nil), looks: quickLooks},
	{name: "default1s", title: "**default**, looks each second", open: latchkey(nil), looks: slowLooks},
	{name: "parked1s", title: "**parked**, looks each second", open: openParked(), looks: slowLooks},
	{name: "parked", title: "**parked**", open: openParked(), looks: quickLooks},
	{name: "parked20", title: "**parked**, looks each 20 ms", open: openParked(), looks: busyLooks},
	{name: "two", title: "**parked**, looks each 20 ms, two processes", open: openParked(), looks: busyLooks, processes: 2},
	{name: "two100", title: "**parked**, two processes", open: openParked(), looks: quickLooks, processes: 2},
	{name: "permits", title: "**parked**, looks each 20 ms, `Permits(3)`", open: openParked(core.Permits(3)), looks: busyLooks, permits: 3},
}

// noBound is more waiters than there are workers.
var noBound = core.MaxWaiters(1 << 20)

func openNone(process) (guarded, error) {
	return guarded{
		middleware: func(next asynq.Handler) asynq.Handler { return next },
		isFailure:  func(err error) bool { return err != nil },
		delay:      asynq.DefaultRetryDelayFunc,
		close:      func() {},
	}, nil
}

// latchkey is asynqlock with options; with a nil delay its own counts.
func latchkey(delay asynq.RetryDelayFunc, opts ...core.Option) func(process) (guarded, error) {
	return open(delay, func(process) asynqlock.Config { return asynqlock.Config{Options: opts} })
}

// openParked is asynqlock with an Inspector.
func openParked(opts ...core.Option) func(process) (guarded, error) {
	return open(nil, func(p process) asynqlock.Config {
		return asynqlock.Config{
			Options:           opts,
			Inspector:         asynq.NewInspectorFromRedisClient(p.once),
			Workers:           p.workers,
			TaskCheckInterval: p.looks.pending,
		}
	})
}

func open(delay asynq.RetryDelayFunc, config func(process) asynqlock.Config) func(process) (guarded, error) {
	if delay == nil {
		delay = asynqlock.RetryDelay(nil)
	}
	return func(p process) (guarded, error) {
		locker, err := core.New(p.locks)
		if err != nil {
			return guarded{}, err
		}
		c := config(p)
		c.Locker, c.Key = locker, keyfunc.Payload("order_id")
		return guarded{
			middleware: asynqlock.New(c),
			isFailure:  asynqlock.IsFailure(nil),
			delay:      delay,
			close:      func() { _ = locker.Close(context.Background()) },
		}, nil
	}
}

func withinASecond(int, error, *asynq.Task) time.Duration { return rand.N(time.Second) }

// openRedislock is the middleware that one writes by hand: obtain, or put the task
// back for up to a second. It renews nothing: no task here takes that long.
func openRedislock(p process) (guarded, error) {
	locks := redislock.New(p.locks)
	return guarded{
		middleware: func(next asynq.Handler) asynq.Handler {
			return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
				var p struct {
					OrderID string `json:"order_id"`
				}
				if err := json.Unmarshal(t.Payload(), &p); err != nil {
					return err
				}
				lock, err := locks.Obtain(ctx, "lock:order_id="+p.OrderID, 30*time.Second, nil)
				if err != nil {
					return err
				}
				defer lock.Release(context.WithoutCancel(ctx))
				return next.ProcessTask(ctx, t)
			})
		},
		isFailure: func(err error) bool { return err != nil && !errors.Is(err, redislock.ErrNotObtained) },
		delay:     withinASecond,
		close:     func() {},
	}, nil
}
