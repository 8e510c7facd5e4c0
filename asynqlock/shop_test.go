//go:build go1.25

package asynqlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// shop runs tasks on servers whose tasks are parked, in a bubble.
type shop struct {
	*bubble
	work      time.Duration
	inspector *asynq.Inspector
	blind     atomic.Bool // the inspector's Redis does not answer
	fails     bool        // what is done now

	mu   sync.Mutex
	runs map[string]int       // by task
	last map[string]time.Time // when one was done, by order
	now  map[string]int       // at work, by order
	most int                  // at once, of an order
}

func newShop(tb testing.TB, work time.Duration) *shop {
	s := &shop{bubble: newBubble(tb), work: work, runs: map[string]int{}, last: map[string]time.Time{}, now: map[string]int{}}
	client := s.dial()
	client.AddHook(blindness{&s.blind})
	s.stops = append(s.stops, func() { _ = client.Close() })
	s.inspector = asynq.NewInspectorFromRedisClient(client)
	return s
}

// config is that of a server with ten workers.
func (s *shop) config(locker *core.Locker) asynqlock.Config {
	return asynqlock.Config{
		Locker: locker, Key: keyfunc.Payload("order_id"),
		Inspector: s.inspector, Workers: 10, TaskCheckInterval: 100 * time.Millisecond,
	}
}

// open starts a server with a Locker of its own, which it returns.
func (s *shop) open(workers int, opts ...core.Option) *core.Locker {
	s.tb.Helper()
	config := s.config(s.locker())
	config.Workers, config.Options = workers, opts
	s.start(workers, asynqlock.New(config)(s))
	return config.Locker
}

func (s *shop) ProcessTask(ctx context.Context, t *asynq.Task) error {
	id, _ := asynq.GetTaskID(ctx)
	var p struct {
		Order string `json:"order_id"`
	}
	if err := json.Unmarshal(t.Payload(), &p); err != nil {
		return err
	}
	enter := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now[p.Order] += n
		s.most = max(s.most, s.now[p.Order])
	}
	enter(1)
	defer enter(-1)
	time.Sleep(s.work)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[id]++
	s.last[p.Order] = time.Now()
	if s.fails {
		return errors.New("no money")
	}
	return nil
}

// enqueues tasks of an order.
func (s *shop) enqueues(n int, id string, opts ...asynq.Option) {
	for range n {
		s.enqueue(order(id), opts...)
	}
}

// done returns how many tasks have run.
func (s *shop) done() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

// wantDone waits until so many have run, once each, and returns how long that took.
func (s *shop) wantDone(n int, within time.Duration) (took time.Duration) {
	s.tb.Helper()
	began := time.Now()
	for s.done() < n && time.Since(began) < within {
		time.Sleep(10 * time.Millisecond)
	}
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) != n {
		s.tb.Errorf("%d of %d tasks have run after %v", len(s.runs), n, time.Since(began))
	}
	for id, runs := range s.runs {
		if runs != 1 {
			s.tb.Errorf("task %s has run %d times", id, runs)
		}
	}
	if failures := s.failures(); len(failures) > 0 {
		s.tb.Errorf("failures: %v", failures)
	}
	return time.Since(began)
}

// holds has the lock of an order until it is told to release it.
func (s *shop) holds(locker *core.Locker, id string) (release func()) {
	s.tb.Helper()
	return hold(s.tb, locker, "order_id="+id)
}

// failing is an Inspector whose Redis does not answer, until it is closed.
func failing() (inspector *asynq.Inspector, stop func()) {
	client := redis.NewClient(&redis.Options{
		Addr:            "127.0.0.1:6379", // not dialled
		Dialer:          func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed },
		MaxRetries:      -1,
		DisableIdentity: true,
	})
	return asynq.NewInspectorFromRedisClient(client), func() {
		_ = client.Close()
		time.Sleep(2 * time.Second) // go-redis dials each second, and sees then that it is closed
	}
}

// blindness is a hook of a client whose Redis does not answer as long as it is on.
type blindness struct{ on *atomic.Bool }

func (b blindness) DialHook(next redis.DialHook) redis.DialHook { return next }
func (b blindness) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if b.on.Load() {
			return net.ErrClosed
		}
		return next(ctx, cmds)
	}
}
func (b blindness) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if b.on.Load() {
			cmd.SetErr(net.ErrClosed)
			return net.ErrClosed
		}
		return next(ctx, cmd)
	}
}
