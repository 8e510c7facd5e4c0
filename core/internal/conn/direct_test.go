//go:build go1.25

package conn_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// credentials are what a client may have that blocks.
type credentials struct{}

func (credentials) Allow() error       { return nil }
func (credentials) ReportResult(error) {}
func (credentials) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	panic("nobody connects")
}

// No caller lends his goroutine to a client that may block on it whatever his context says.
func TestCommandOfAClientThatMayBlock(t *testing.T) {
	for name, options := range map[string]redis.Options{
		"CredentialsProvider":          {CredentialsProvider: func() (string, string) { return "", "" }},
		"CredentialsProviderContext":   {CredentialsProviderContext: func(context.Context) (string, string, error) { return "", "", nil }},
		"StreamingCredentialsProvider": {StreamingCredentialsProvider: credentials{}},
		"OnConnect":                    {OnConnect: func(context.Context, *redis.Conn) error { return nil }},
		"Limiter":                      {Limiter: credentials{}},
		"no deadlines of reading":      {ReadTimeout: -2, WriteTimeout: time.Second},
		"no deadlines of writing":      {WriteTimeout: -2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options.ContextTimeoutEnabled = true
				f := newFake(&options)
				c, begun := config(), new(atomic.Int32)
				c.Workers = busyWorkers{begun: begun}
				if _, err := conn.New(f.client, c).Do(background, batched("k"), timeout); err != nil || begun.Load() != 1 {
					t.Errorf("%v, %d goroutines", err, begun.Load())
				}
				_ = f.client.Close()
			})
		})
	}
}

// What cannot be seen of a client it has to do once: then it is late, and more so than by the machine's fault.
func TestCommandOfAClientThatHasBlocked(t *testing.T) {
	blocks := func(late time.Duration) fault {
		return func(ctx context.Context, _ func() []any) (any, error) {
			<-ctx.Done()
			time.Sleep(late)
			return nil, ctx.Err()
		}
	}
	for _, direct := range []bool{true, false} {
		for late, want := range map[time.Duration]int32{0: 0, 100 * time.Millisecond: 0, 101 * time.Millisecond: 1} {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(&redis.Options{ContextTimeoutEnabled: true})
				c, begun := config(), new(atomic.Int32)
				c.Workers = busyWorkers{begun: begun}
				s := conn.New(f.client, c)
				ctx, cancel := background, func() {}
				if !direct {
					ctx, cancel = context.WithCancel(background) // and Redis has not answered yet
				}
				defer cancel()
				f.fail(blocks(late))
				if _, err := s.Do(ctx, batched("k"), timeout); !errors.Is(err, conn.ErrNoAnswer) {
					t.Error(err)
				}
				time.Sleep(time.Second)
				begun.Store(0)
				if _, err := s.Do(background, batched("k"), timeout); err != nil || begun.Load() != want {
					t.Errorf("after one that was %v late: %v, %d goroutines; want %d", late, err, begun.Load(), want)
				}
				_ = f.client.Close()
			})
		}
	}
}

// A hook that ends its goroutine costs its own call, and nothing of what may be in flight. What was written is compensated. No caller
// lends his goroutine to it again.
func TestHookThatEndsItsGoroutine(t *testing.T) {
	for _, direct := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(&redis.Options{ContextTimeoutEnabled: true})
			c, begun := config(), new(atomic.Int32)
			c.Workers = busyWorkers{begun: begun}
			s, began := conn.New(f.client, c), time.Now()
			ctx, cancel := background, func() {}
			if !direct {
				ctx, cancel = context.WithCancel(background) // and Redis has not answered yet
			}
			defer cancel()
			for range 20 {
				f.fail(func(_ context.Context, write func() []any) (any, error) {
					write()
					runtime.Goexit()
					return nil, nil
				})
				command, compensated := counted(nil)
				var calls sync.WaitGroup
				calls.Go(func() {
					_, err := s.Do(ctx, command, timeout)
					wantFailure(t, err, conn.Unknown, nil)
				})
				if calls.Wait(); compensated.Load() != 1 {
					t.Errorf("direct: %v: %d compensations", direct, compensated.Load())
				}
			}
			begun.Store(0)
			if _, err := s.Do(background, batched("k"), timeout); err != nil || begun.Load() != 1 {
				t.Errorf("direct: %v: the next one: %v, %d goroutines", direct, err, begun.Load())
			}
			wantTime(t, "the next one", began, 0)
			_ = f.client.Close()
		})
	}
}

// withoutDone has the deadline of a context, and is never done: not each context of an application's keeps to the contract.
type withoutDone struct{ context.Context }

func (withoutDone) Done() <-chan struct{} { return nil }
func (withoutDone) Err() error            { return nil }

// Such a call ends with its timeout.
func TestContextThatIsNeverDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(&redis.Options{ContextTimeoutEnabled: true})
		c, begun := config(), new(atomic.Int32)
		c.Workers = busyWorkers{begun: begun}
		s := conn.New(f.client, c)
		f.fail(func(ctx context.Context, write func() []any) (any, error) {
			write()
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithTimeout(background, timeout/2)
		defer cancel()
		began := time.Now()
		if _, err := s.Do(withoutDone{ctx}, batched("k"), timeout); err == nil {
			t.Error("no error")
		}
		wantTime(t, "it returned", began, timeout)
		if _, err := s.Do(background, batched("k"), timeout); err != nil || begun.Load() != 0 {
			t.Errorf("the next one: %v, %d goroutines", err, begun.Load())
		}
		_ = f.client.Close()
	})
}
