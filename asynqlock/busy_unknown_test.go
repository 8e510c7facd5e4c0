//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// interference is a hook that does something before the second script runs. If that
// fails, it does it again before each one that follows: what never left is sent once more.
type interference struct {
	scripts atomic.Int32
	do      func() error
}

func (h *interference) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *interference) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h *interference) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		// What never left is sent once more, and fails again.
		if cmd.Name() == "evalsha" && h.scripts.Add(1) >= 2 {
			if err := h.do(); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmd)
	}
}

// What is in the way may be gone, or unknown, when Redis is asked about it. The
// task is kept then: nobody else would do its work.
func TestWhatIsInTheWayIsUnknown(t *testing.T) {
	for name, ends := range map[string]bool{"gone": true, "no answer": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := miniredis.NewMiniRedis()
				server.ClockTTL(true)
				defer server.Close()
				dial := func(context.Context, string, string) (net.Conn, error) { return server.Dial() }
				open := func() (*redis.Client, *core.Locker) {
					client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: dial})
					locker, err := core.New(client)
					if err != nil {
						t.Fatal(err)
					}
					return client, locker
				}
				holding, holder := open()
				defer holding.Close()
				defer holder.Close(background)
				release := hold(t, holder, "order_id=42", core.FixedLease(time.Hour))

				client, locker := open()
				defer client.Close()
				defer locker.Close(background)
				if err := by(locker)(does(nothing)).ProcessTask(background, order("43")); err != nil {
					t.Fatal(err) // from here on the server knows the scripts
				}
				hook := &interference{do: func() error { return errors.New("connection reset") }}
				if ends {
					hook.do = sync.OnceValue(func() error { release(); return nil })
				} else {
					defer release()
				}
				client.AddHook(hook)
				guard := asynqlock.New(asynqlock.Config{
					Locker: locker, Key: keyfunc.Payload("order_id"), OnBusy: asynqlock.Drop, Options: []core.Option{core.NoWait()},
				})
				err := guard(forbidden(t)).ProcessTask(background, order("42"))
				wantRefusal(t, err, core.ErrNotAcquired)
				wantNot(t, err, asynq.RevokeTask)
				if d := asynqlock.RetryDelay(nil)(0, err, order("42")); d > time.Second {
					t.Errorf("tried again after %v, want soon", d)
				}
				if hook.scripts.Load() < 2 {
					t.Error("Redis was not asked")
				}
			})
		})
	}
}
