package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"github.com/hibiken/asynq/x/rate"
	"github.com/redis/go-redis/v9"
)

// The semaphore of asynq's x/rate, as its example has it, one for each key. It never waits:
// a task that gets no permit tries again, here after the 10 ms of all that poll.
var asynqRateLibrary = library{name: asynqRateName, sends: []string{"zrem"}, open: openAsynqRate}

type asynqRate struct {
	redis asynq.RedisClientOpt
	tasks chan context.Context

	mu         sync.Mutex
	semaphores map[string]*rate.Semaphore
}

func openAsynqRate(addr string, _ settings) (locker, error) {
	l := &asynqRate{
		redis:      asynq.RedisClientOpt{Addr: addr},
		tasks:      make(chan context.Context, 64),
		semaphores: map[string]*rate.Semaphore{},
	}
	return l, l.runTasks()
}

// runTasks fills the tasks with contexts. A semaphore knows its holders by the task in whose
// context they call, and only asynq itself makes those.
func (l *asynqRate) runTasks() error {
	client := redis.NewClient(&redis.Options{Addr: l.redis.Addr, DB: 1})
	defer client.Close()
	queue := uuid.NewString() // other processes have their own
	tasks := asynq.NewClientFromRedisClient(client)
	for range cap(l.tasks) {
		if _, err := tasks.Enqueue(asynq.NewTask("hold", nil), asynq.Queue(queue)); err != nil {
			return err
		}
	}
	var running sync.WaitGroup
	running.Add(cap(l.tasks))
	server := asynq.NewServerFromRedisClient(client, asynq.Config{Queues: map[string]int{queue: 1}, LogLevel: asynq.FatalLevel})
	err := server.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		l.tasks <- context.WithoutCancel(ctx)
		running.Done()
		return nil
	}))
	if err != nil {
		return err
	}
	running.Wait()
	server.Shutdown()
	return nil
}

func (l *asynqRate) lock(ctx context.Context, key string) (held, error) {
	return l.takePermit(ctx, key, 1)
}

func (l *asynqRate) takePermit(ctx context.Context, key string, n int) (held, error) {
	h := &asynqRateHeld{asynqRate: l, semaphore: l.semaphore(key, n), task: <-l.tasks}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute) // as asynq has it for a task
	defer cancel()
	for {
		ok, err := h.semaphore.Acquire(taskContext{ctx, h.task})
		if ok {
			return h, nil
		}
		if err == nil {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(pollEvery):
				continue
			}
		}
		l.tasks <- h.task
		return nil, err
	}
}

func (l *asynqRate) semaphore(key string, n int) *rate.Semaphore {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.semaphores[key]
	if s == nil {
		s = rate.NewSemaphore(l.redis, key, n)
		l.semaphores[key] = s
	}
	return s
}

func (l *asynqRate) redisKey(key string) string { return "asynq:sema:" + key }

func (l *asynqRate) close() error {
	var errs []error
	for _, s := range l.semaphores {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// taskContext is a call's context with the values of a task's.
type taskContext struct {
	context.Context
	task context.Context
}

func (c taskContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.task.Value(key)
}

type asynqRateHeld struct {
	*asynqRate
	semaphore *rate.Semaphore
	task      context.Context
}

func (h *asynqRateHeld) unlock() error {
	err := h.semaphore.Release(h.task)
	h.tasks <- h.task
	return err
}

func (h *asynqRateHeld) lost() bool { return false }
