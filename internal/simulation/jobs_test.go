package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/internal/checker"
	"github.com/latchkey-go/latchkey/keyfunc"
)

const (
	longestRun = 20 * time.Second
	maxRetries = 1000
)

// jobs are the tasks of a world, and what becomes of them.
type jobs struct {
	w     *world
	queue *asynq.Client
	calm  atomic.Bool // no handler fails

	mu   sync.Mutex
	byID map[string]*checker.Job
	ids  []string
}

// trigger enqueues a task for a key.
func (j *jobs) trigger(key string) {
	t := asynq.NewTask("reindex", fmt.Appendf(nil, `{"shop":%q}`, key))
	id := j.w.nextID()
	j.mu.Lock()
	j.byID[id] = &checker.Job{ID: id, Key: key, Triggered: now()}
	j.ids = append(j.ids, id)
	j.mu.Unlock()
	if _, err := j.queue.Enqueue(t, asynq.TaskID(id), asynq.MaxRetry(maxRetries)); err != nil {
		j.w.complain("%s was not enqueued: %v", id, err)
	}
}

func (j *jobs) update(ctx context.Context, change func(*checker.Job)) {
	id, _ := asynq.GetTaskID(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	change(j.byID[id])
}

// take returns those since the last call.
func (j *jobs) take() (out []checker.Job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range j.ids {
		job := *j.byID[id]
		job.Runs = slices.Clone(job.Runs)
		out = append(out, job)
	}
	j.ids = nil
	return out
}

// seen notes when a task comes to a process, and whether it is dropped.
func (j *jobs) seen(p *process, next asynq.Handler) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		j.update(ctx, func(job *checker.Job) {
			job.Dropped = 0 // or asynq has not heard of it
			if job.Came == 0 {
				job.Came = now()
			}
		})
		err := next.ProcessTask(ctx, t)
		if errors.Is(err, asynq.RevokeTask) && p.life.Err() == nil {
			j.update(ctx, func(job *checker.Job) { job.Dropped = now() })
		}
		return err
	})
}

// run is the handler.
func (j *jobs) run(p *process, random *rand.Rand) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		length, fails, n := time.Duration(0), false, 0
		j.update(ctx, func(job *checker.Job) {
			length, fails = between(random, 0, longestRun>>random.IntN(8)), !j.calm.Load() && random.IntN(8) == 0
			n = len(job.Runs)
			job.Runs = append(job.Runs, checker.Run{Began: now()})
		})
		end := func(done bool) {
			j.update(ctx, func(job *checker.Job) {
				if r := &job.Runs[n]; r.Ended == 0 {
					r.Ended, r.Done = now(), done
				}
			})
		}
		defer context.AfterFunc(ctx, func() { end(false) })() // it stands still, perhaps, and does not know
		p.sleep(ctx, length)
		switch {
		case p.life.Err() != nil:
			end(false)
			return p.life.Err()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case fails:
			end(false)
			return errFailed
		}
		end(true)
		return nil
	})
}

// serve has asynq run tasks in a process, and returns what ends that.
func (j *jobs) serve(p *process) (shutdown func()) {
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", Dialer: p.network.dial, PoolSize: 200, DisableIdentity: true,
		DialTimeout: 2 * j.w.timeout, ReadTimeout: 2 * j.w.timeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	soon := func(int, error, *asynq.Task) time.Duration { return time.Second }
	server := asynq.NewServerFromRedisClient(client, asynq.Config{
		Concurrency: 8, IsFailure: asynqlock.IsFailure(nil), RetryDelayFunc: asynqlock.RetryDelay(soon),
		DelayedTaskCheckInterval: time.Second, TaskCheckInterval: time.Second,
		ShutdownTimeout: time.Second, Logger: quiet{}, LogLevel: asynq.FatalLevel,
	})
	guard := asynqlock.New(asynqlock.Config{Locker: p.locker, Key: keyfunc.Payload("shop"), OnBusy: asynqlock.KeepOne})
	if err := server.Start(j.seen(p, guard(j.run(p, p.random)))); err != nil {
		panic(err)
	}
	return func() {
		server.Shutdown()
		_ = client.Close()
	}
}

type quiet struct{}

func (quiet) Debug(...any) {}
func (quiet) Info(...any)  {}
func (quiet) Warn(...any)  {}
func (quiet) Error(...any) {}
func (quiet) Fatal(...any) {}
