//go:build go1.25

package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// slowRedis answers each command with an error, as late as it is told.
type slowRedis struct{ late atomic.Int64 }

type refused struct{}

func (refused) Error() string { return "ERR refused" }
func (refused) RedisError()   {}

func (s *slowRedis) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *slowRedis) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := s.answer(ctx)
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return err
	}
}

func (s *slowRedis) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := s.answer(ctx)
		cmd.SetErr(err)
		return err
	}
}

func (s *slowRedis) answer(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(s.late.Load())):
		return refused{}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Who looks into an overload gets an answer.
func TestLooksAreNotRefusedForOverload(t *testing.T) {
	look := func(inspect func(context.Context, *core.Locker, string) (core.Info, error)) (overloaded int32) {
		synctest.Test(t, func(t *testing.T) {
			server := &slowRedis{}
			client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true}) // not dialled
			defer client.Close()
			client.AddHook(server)
			locker, err := core.New(client)
			if err != nil {
				t.Fatal(err)
			}
			defer locker.Close(context.Background())
			server.late.Store(int64(time.Millisecond))
			_, _ = locker.Inspect(context.Background(), "k")
			server.late.Store(int64(time.Second))
			recovers := time.AfterFunc(3*time.Second, func() { server.late.Store(int64(time.Millisecond)) })
			defer recovers.Stop()
			var looks sync.WaitGroup
			var refused atomic.Int32
			for range 200 {
				looks.Go(func() {
					if _, err := inspect(context.Background(), locker, "k"); errors.Is(err, core.ErrOverloaded) {
						refused.Add(1)
					}
				})
			}
			looks.Wait()
			overloaded = refused.Load()
		})
		return overloaded
	}
	if n := look(func(ctx context.Context, l *core.Locker, key string) (core.Info, error) { return l.Inspect(ctx, key) }); n == 0 {
		t.Error("nothing is overloaded here")
	}
	if n := look(inspectPatiently); n > 0 {
		t.Errorf("%d looks of 200 were refused", n)
	}
}
