//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// by returns a middleware by order_id; the keys are the plain ids.
func by(locker *core.Locker, opts ...core.Option) asynq.MiddlewareFunc {
	return asynqlock.New(asynqlock.Config{Locker: locker, Key: keyfunc.Payload("order_id"), Options: opts})
}

// hold takes a lock and returns what releases it.
func hold(tb testing.TB, locker *core.Locker, key string, opts ...core.Option) func() {
	tb.Helper()
	k, err := locker.TryLock(background, key, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return func() {
		tb.Helper()
		if err := k.Unlock(background); err != nil {
			tb.Error(err)
		}
	}
}

func isLocked(tb testing.TB, locker *core.Locker, key string) bool {
	tb.Helper()
	info, err := locker.Inspect(background, key)
	if err != nil {
		tb.Fatal(err)
	}
	return info.Locked
}

func TestHandlerRunsUnderTheLock(t *testing.T) {
	ctx := taskContext(t, "my-id", 25)
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		task := order("42")
		ran := false
		err := by(locker)(asynq.HandlerFunc(func(ctx context.Context, got *asynq.Task) error {
			ran = true
			if got != task {
				t.Error("the handler got another task")
			}
			outer, ok := core.FromContext(ctx)
			if !ok || outer.Key() != "order_id=42" {
				t.Fatal("the context does not hold the lock")
			}
			inner, err := locker.TryLock(ctx, "order_id=42")
			if err != nil {
				t.Fatal(err)
			}
			defer inner.Unlock(ctx)
			if inner.Owner() != outer.Owner() {
				t.Error("the nested lock has another owner")
			}
			if id, _ := asynq.GetTaskID(ctx); id != "my-id" {
				t.Errorf("task id %q, want my-id", id)
			}
			if n, ok := asynq.GetMaxRetry(ctx); n != 25 || !ok {
				t.Errorf("max retry %d, want 25", n)
			}
			wantRefusal(t, by(locker)(forbidden(t)).ProcessTask(background, order("42")))
			synctest.Wait() // it has left the wait queue
			return by(locker)(does(nothing)).ProcessTask(background, order("43"))
		})).ProcessTask(ctx, task)
		if err != nil || !ran {
			t.Errorf("error %v, ran %v", err, ran)
		}
		if isLocked(t, locker, "order_id=42") {
			t.Error("the lock is still held")
		}
	})
}

func TestLockEndsWithTheHandler(t *testing.T) {
	failure := errors.New("no money")
	for name, end := range map[string]func(context.Context) error{
		"nil":   nothing,
		"error": func(context.Context) error { return failure },
		"panic": func(context.Context) error { panic(failure) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locker := locktest.New(t)
				var err error
				func() {
					defer func() {
						if p := recover(); name == "panic" && p != failure {
							t.Errorf("panic %v, want the handler's", p)
						}
					}()
					err = by(locker)(does(end)).ProcessTask(background, order("42"))
				}()
				if name == "error" && err != failure || name == "nil" && err != nil {
					t.Errorf("error is %v", err)
				}
				if isLocked(t, locker, "order_id=42") {
					t.Error("the lock is still held")
				}
			})
		})
	}
}

func TestTaskWithoutAKeyNeverRuns(t *testing.T) {
	payload := keyfunc.Payload("order_id")
	for name, c := range map[string]struct {
		payload string
		key     keyfunc.Func[keyfunc.Task]
		is      error
	}{
		"missing":    {`{}`, payload, keyfunc.ErrMissing},
		"null":       {`{"order_id":null}`, payload, keyfunc.ErrMissing},
		"empty":      {``, payload, keyfunc.ErrMissing},
		"twice":      {`{"order_id":1,"order_id":2}`, payload, keyfunc.ErrAmbiguous},
		"other case": {`{"order_id":1,"Order_ID":2}`, payload, keyfunc.ErrAmbiguous},
		"no JSON":    {`order_id=1`, payload, keyfunc.ErrMalformed},
		"object":     {`{"order_id":{}}`, payload, keyfunc.ErrMalformed},
		"empty key":  {``, func(keyfunc.Task) (string, error) { return "", nil }, core.ErrInvalidKey},
		"too long":   {`{"order_id":"` + strings.Repeat("x", 1025) + `"}`, payload, core.ErrInvalidKey},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				guard := asynqlock.New(asynqlock.Config{Locker: locktest.New(t), Key: c.key})
				err := guard(forbidden(t)).ProcessTask(background, asynq.NewTask("order:pay", []byte(c.payload)))
				wantFailure(t, err, asynq.SkipRetry, c.is)
			})
		})
	}
}

func TestOptionalAndSkipRunUnlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		release := hold(t, locker, "order_id=42")
		defer release()
		runs := 0
		unlocked := does(func(ctx context.Context) error {
			runs++
			if _, held := core.FromContext(ctx); held {
				t.Error("the handler holds a lock")
			}
			return nil
		})
		optional := asynqlock.New(asynqlock.Config{Locker: locker, Key: keyfunc.Optional(keyfunc.Payload("order_id"))})
		if err := optional(unlocked).ProcessTask(background, asynq.NewTask("order:pay", []byte(`{}`))); err != nil {
			t.Error(err)
		}
		wantRefusal(t, optional(forbidden(t)).ProcessTask(background, order("42")))

		skip := asynqlock.New(asynqlock.Config{
			Locker: locker,
			Key:    keyfunc.Payload("order_id"),
			Skip:   func(t *asynq.Task) bool { return t.Type() == "mail" },
		})
		if err := skip(unlocked).ProcessTask(background, asynq.NewTask("mail", nil)); err != nil {
			t.Error(err)
		}
		wantRefusal(t, skip(forbidden(t)).ProcessTask(background, order("42")))
		if runs != 2 {
			t.Errorf("%d runs, want 2", runs)
		}
	})
}

func TestRedisUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		client := redis.NewClient(&redis.Options{
			Addr:   "127.0.0.1:6379", // not dialled
			Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, refused },
		})
		defer client.Close()
		locker, err := core.New(client)
		if err != nil {
			t.Fatal(err)
		}
		defer locker.Close(background)
		for _, policy := range []asynqlock.BusyPolicy{asynqlock.Retry, asynqlock.Drop} {
			guard := asynqlock.New(asynqlock.Config{Locker: locker, Key: keyfunc.Payload("order_id"), OnBusy: policy})
			err = guard(forbidden(t)).ProcessTask(background, order("42"))
			wantFailure(t, err, core.ErrUnavailable, refused)
			if text := err.Error(); !strings.Contains(text, "order_id=42") || !strings.Contains(text, refused.Error()) {
				t.Errorf("asynq shows %q; want the key and the cause", text)
			}
			wantNot(t, err, asynq.SkipRetry, asynq.RevokeTask)
		}
	})
}

func TestLostLockEndsTheTask(t *testing.T) {
	failure := errors.New("interrupted")
	for _, result := range []error{nil, failure} {
		synctest.Test(t, func(t *testing.T) {
			locker := locktest.New(t)
			err := by(locker)(does(func(ctx context.Context) error {
				if _, err := locker.ForceUnlock(background, "order_id=42"); err != nil {
					t.Fatal(err)
				}
				<-ctx.Done()
				wantErr(t, context.Cause(ctx), core.ErrLost)
				return result
			})).ProcessTask(background, order("42"))
			wantFailure(t, err, core.ErrLost)
			if result != nil {
				wantErr(t, err, result)
			}
		})
	}
}

func TestWindowOpensAfterSuccessOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		guard := by(locker, core.KeepFor(time.Minute))
		failure := errors.New("no money")
		wantErr(t, guard(does(func(context.Context) error { return failure })).ProcessTask(background, order("42")), failure)
		if err := guard(does(nothing)).ProcessTask(background, order("42")); err != nil {
			t.Fatalf("after an error: %v", err)
		}
		wantRefusal(t, guard(forbidden(t)).ProcessTask(background, order("42")), core.ErrNotAcquired)
		time.Sleep(time.Minute)
		if err := guard(does(nothing)).ProcessTask(background, order("42")); err != nil {
			t.Errorf("after the window: %v", err)
		}
	})
}

// A task that is refused because the Locker closes has not failed; one whose lock
// was taken away has.
func TestLockerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		started, result := make(chan struct{}), make(chan error)
		go func() {
			result <- by(locker)(does(func(ctx context.Context) error {
				close(started)
				<-ctx.Done()
				return nil
			})).ProcessTask(background, order("42"))
		}()
		<-started
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		go locker.Close(ctx)
		synctest.Wait()
		for _, policy := range []asynqlock.BusyPolicy{asynqlock.Retry, asynqlock.Drop} {
			guard := asynqlock.New(asynqlock.Config{Locker: locker, Key: keyfunc.Payload("order_id"), OnBusy: policy})
			err := guard(forbidden(t)).ProcessTask(background, order("43"))
			wantRefusal(t, err, core.ErrClosed)
			wantNot(t, err, asynq.RevokeTask)
		}
		wantFailure(t, <-result, core.ErrClosed)
	})
}
