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
)

// row is one way to guard tasks.
type row struct {
	name, title string
	// open returns the middleware and how refusals are told and retried.
	open func(client *redis.Client) (guarded, error)
	// looks are how often asynq looks for tasks.
	looks looks
}

type looks struct{ delayed, pending time.Duration }

var (
	quickLooks = looks{delayed: 200 * time.Millisecond, pending: 100 * time.Millisecond} // as docs/jobs.md says
	slowLooks  = looks{delayed: time.Second, pending: time.Second}                       // asynq's default for pending tasks
)

type guarded struct {
	middleware asynq.MiddlewareFunc
	isFailure  func(error) bool
	delay      asynq.RetryDelayFunc
	close      func()
}

var rows = []row{
	{"none", "no lock", openNone, quickLooks},
	{"redislock", "redislock, by hand", openRedislock, quickLooks},
	{"nowait", "`NoWait`, back within 1 s, looks each second", latchkey(withinASecond, core.NoWait()), slowLooks},
	{"wait200ms", "`Wait(200ms)`, the same", latchkey(withinASecond, core.Wait(200*time.Millisecond), noBound), slowLooks},
	{"wait1s", "`Wait(1s)`, no bound on waiters", latchkey(nil, core.Wait(time.Second), noBound), quickLooks},
	{"default", "**default**", latchkey(nil), quickLooks},
}

// noBound is more waiters than there are workers.
var noBound = core.MaxWaiters(1 << 20)

func openNone(*redis.Client) (guarded, error) {
	return guarded{
		middleware: func(next asynq.Handler) asynq.Handler { return next },
		isFailure:  func(err error) bool { return err != nil },
		delay:      asynq.DefaultRetryDelayFunc,
		close:      func() {},
	}, nil
}

// latchkey is asynqlock with options; with a nil delay its own counts.
func latchkey(delay asynq.RetryDelayFunc, opts ...core.Option) func(*redis.Client) (guarded, error) {
	if delay == nil {
		delay = asynqlock.RetryDelay(nil)
	}
	return func(client *redis.Client) (guarded, error) {
		locker, err := core.New(client)
		if err != nil {
			return guarded{}, err
		}
		core.SetDefault(locker)
		return guarded{
			middleware: asynqlock.ByPayload("order_id", opts...),
			isFailure:  asynqlock.IsFailure(nil),
			delay:      delay,
			close: func() {
				core.SetDefault(nil)
				_ = locker.Close(context.Background())
			},
		}, nil
	}
}

func withinASecond(int, error, *asynq.Task) time.Duration { return rand.N(time.Second) }

// openRedislock is the middleware that one writes by hand: obtain, or put the task
// back for up to a second. It renews nothing: no task here takes that long.
func openRedislock(client *redis.Client) (guarded, error) {
	locks := redislock.New(client)
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
