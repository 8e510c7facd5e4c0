//go:build go1.25

package riverlock_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/riverqueue/river/rivertype"

	"github.com/latchkey-go/latchkey/adapters/riverlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
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

// A job for which Redis was not asked comes later, and has not failed.
func TestJobUnderOverloadIsSnoozed(t *testing.T) {
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
		var n atomic.Int64 // each job has a key of its own
		m := riverlock.With(locker).By(func(keyfunc.Task) (string, error) { return strconv.Itoa(int(n.Add(1))), nil })
		if err := m.Work(t.Context(), newJob(""), forbidden(t)); errors.Is(err, core.ErrOverloaded) {
			t.Fatal(err)
		}
		server.late.Store(int64(time.Second))
		results := make(chan error, 100)
		for i := range cap(results) {
			go func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				results <- m.Work(t.Context(), newJob(""), forbidden(t))
			}()
		}
		refused := 0
		for range cap(results) {
			err := <-results
			if !errors.Is(err, core.ErrOverloaded) {
				continue
			}
			refused++
			var failed *core.LockError
			var snooze *rivertype.JobSnoozeError
			if !errors.As(err, &failed) || !errors.As(err, &snooze) {
				t.Fatalf("%v; want one that snoozes the job", err)
			}
			if least := max(time.Second, failed.RetryAfter); snooze.Duration < least || snooze.Duration > 2*least {
				t.Errorf("snoozed for %v, want %v to twice that", snooze.Duration, least)
			}
		}
		if refused == 0 {
			t.Error("nothing was refused")
		}
	})
}
