package asynqlock_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/buffered"
)

// bubble is a queue on an embedded Redis inside a synctest bubble: asynq's own
// servers and schedulers, in fake time. The caller closes it.
type bubble struct {
	tb     testing.TB
	server *miniredis.Miniredis
	client *redis.Client
	queue  *asynq.Client
	stops  []func()

	refused     atomic.Int32
	mu          sync.Mutex
	failed      []error
	connections []net.Conn // all that were dialled
	closed      bool
}

func newBubble(tb testing.TB) *bubble {
	time.Sleep(time.Nanosecond) // fake time begins on a whole second, where hardly any deadline of a Timeout is
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	b := &bubble{tb: tb, server: server}
	b.client = b.dial()
	b.queue = asynq.NewClientFromRedisClient(b.client)
	return b
}

func (b *bubble) dial() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", // not dialled
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			pipe, err := b.server.Dial()
			if err != nil {
				return nil, err
			}
			conn := buffered.New(pipe)
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.closed {
				_ = conn.Close()
			}
			b.connections = append(b.connections, conn)
			return conn, nil
		},
		DisableIdentity: true,
		PoolSize:        100,
	})
}

func (b *bubble) close() {
	for i := len(b.stops) - 1; i >= 0; i-- {
		b.stops[i]()
	}
	if err := b.client.Close(); err != nil {
		b.tb.Error(err)
	}
	b.server.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, conn := range b.connections { // a client leaves those open that it dials while it is closed
		_ = conn.Close()
	}
}

// locker returns a Locker with a client of its own, as each process has.
func (b *bubble) locker(opts ...core.Option) *core.Locker {
	b.tb.Helper()
	client := b.dial()
	locker, err := core.New(client, opts...)
	if err != nil {
		b.tb.Fatal(err)
	}
	b.stops = append(b.stops, func() {
		_ = locker.Close(background)
		_ = client.Close()
	})
	return locker
}

// start runs a server with so many workers, otherwise as the package's documentation
// says.
func (b *bubble) start(workers int, handler asynq.Handler, configure ...func(*asynq.Config)) {
	b.tb.Helper()
	isFailure := asynqlock.IsFailure(nil)
	config := asynq.Config{
		Concurrency:              workers,
		IsFailure:                isFailure,
		RetryDelayFunc:           asynqlock.RetryDelay(nil),
		DelayedTaskCheckInterval: 200 * time.Millisecond,
		TaskCheckInterval:        100 * time.Millisecond,
		Logger:                   silent{},
		ErrorHandler: asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
			if !isFailure(err) {
				b.refused.Add(1)
				return
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.failed = append(b.failed, err)
		}),
	}
	for _, c := range configure {
		c(&config)
	}
	server := asynq.NewServerFromRedisClient(b.client, config)
	if err := server.Start(handler); err != nil {
		b.tb.Fatal(err)
	}
	b.stops = append(b.stops, server.Shutdown)
}

func (b *bubble) enqueue(t *asynq.Task, opts ...asynq.Option) {
	b.tb.Helper()
	if _, err := b.queue.Enqueue(t, opts...); err != nil {
		b.tb.Fatal(err)
	}
}

func (b *bubble) failures() []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// schedule starts a scheduler with one entry.
func (b *bubble) schedule(t *asynq.Task, cron string, opts ...asynq.Option) {
	b.tb.Helper()
	s := asynq.NewSchedulerFromRedisClient(b.client, &asynq.SchedulerOpts{Logger: silent{}})
	if _, err := s.Register(cron, t, opts...); err != nil {
		b.tb.Fatal(err)
	}
	if err := s.Start(); err != nil {
		b.tb.Fatal(err)
	}
	b.stops = append(b.stops, s.Shutdown)
}
