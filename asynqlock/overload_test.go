//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
)

// slowRedis answers each command with an error, as late as it is told.
type slowRedis struct{ late atomic.Int64 }

type refusedByRedis struct{}

func (refusedByRedis) Error() string { return "ERR refused" }
func (refusedByRedis) RedisError()   {}

func (s *slowRedis) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *slowRedis) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := s.answer(ctx)
		cmd.SetErr(err)
		return err
	}
}

func (s *slowRedis) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := s.answer(ctx)
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return err
	}
}

func (s *slowRedis) answer(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(s.late.Load())):
		return refusedByRedis{}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A task for which Redis was not asked comes later, and has not failed.
func TestTaskUnderOverloadIsPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowRedis{}
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true}) // not dialled
		defer client.Close()
		client.AddHook(server)
		locker, err := core.New(client)
		if err != nil {
			t.Fatal(err)
		}
		defer locker.Close(background)
		guard := by(locker)
		if err := guard(forbidden(t)).ProcessTask(background, order("41")); errors.Is(err, core.ErrOverloaded) {
			t.Fatal(err)
		}
		server.late.Store(int64(time.Second))
		results := make(chan error, 100)
		for i := range cap(results) {
			go func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				results <- guard(forbidden(t)).ProcessTask(background, order(strconv.Itoa(i)))
			}()
		}
		refused := 0
		for range cap(results) {
			err := <-results
			if !errors.Is(err, core.ErrOverloaded) {
				continue
			}
			refused++
			wantRefusal(t, err)
			var failed *core.LockError
			if !errors.As(err, &failed) {
				t.Fatal(err)
			}
			least := max(time.Second, failed.RetryAfter)
			if d := asynqlock.RetryDelay(nil)(0, err, order("42")); d < least-2*time.Millisecond || d > 2*least {
				t.Errorf("tried again after %v, want %v to twice that", d, least)
			}
		}
		if refused == 0 {
			t.Error("nothing was refused")
		}
	})
}
