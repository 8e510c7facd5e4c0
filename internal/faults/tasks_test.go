package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Tasks under KeepOne, which all workers of a run have asynq run.

const (
	taskType   = "reindex"
	longestRun = 300 * time.Millisecond
	longRuns   = 8  // in per cent: they outlast a lease
	failing    = 12 // in per cent
)

// serve has asynq run tasks, anew if it does already.
func (w *worker) serve() {
	w.endServing()
	client := w.setup.Redis.clients(w.deadlines)[0]
	config := asynq.Config{
		Concurrency: 6, ShutdownTimeout: lease, Logger: quiet{}, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
	}
	asynqlock.Configure(&config)
	server := asynq.NewServerFromRedisClient(client, config)
	guard := asynqlock.New(asynqlock.Config{
		Locker: w.locker, Key: keyfunc.Payload("shop"), OnBusy: asynqlock.KeepOne, Options: []core.Option{core.Lease(lease)},
	})
	if err := server.Start(w.seen(guard(asynq.HandlerFunc(w.runTask)))); err != nil {
		panic(err)
	}
	w.shutdown = func() {
		server.Shutdown()
		awaitIdleClients()
		_ = client.Close()
	}
}

func (w *worker) endServing() {
	if w.shutdown != nil {
		w.shutdown()
		w.shutdown = nil
	}
}

// seen tells when a task comes, and when it is dropped.
func (w *worker) seen(next asynq.Handler) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		w.send(message{Task: &step{Task: id, Is: "here", At: now()}})
		err := next.ProcessTask(ctx, t)
		if errors.Is(err, asynq.RevokeTask) {
			w.send(message{Task: &step{Task: id, Is: "dropped", At: now()}})
		}
		return err
	})
}

// runTask is the handler. What it does after its lock has ended is no run.
func (w *worker) runTask(ctx context.Context, _ *asynq.Task) error {
	id, _ := asynq.GetTaskID(ctx)
	k, _ := core.FromContext(ctx)
	s := step{Task: id, Run: w.nextID()}
	tell := func(is string, at int64) {
		s.Is, s.At = is, at
		w.send(message{Task: &s})
	}
	tell("run", now())
	length := rand.N(longestRun)
	if rand.IntN(100) < longRuns {
		length = rand.N(longestHold)
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	deadline, at := w.deadlines.until(k.Owner()), now()
	switch {
	case ctx.Err() != nil || at > deadline:
		tell("failed", min(at, deadline))
		return context.Cause(ctx)
	case int(w.failing.Load()) > rand.IntN(100):
		tell("failed", at)
		return errWorkFailed
	}
	tell("done", at)
	return nil
}

type quiet struct{}

func (quiet) Debug(...any) {}
func (quiet) Info(...any)  {}
func (quiet) Warn(...any)  {}
func (quiet) Error(...any) {}
func (quiet) Fatal(...any) {}
