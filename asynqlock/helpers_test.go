package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/asynqlock"
)

var background = context.Background()

// patience bounds what is waited for in real time, on a machine that does other
// things at the same time.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what goes wrong on purpose
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}

// silent is a logger for asynq and for go-redis.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
func (silent) Debug(...any)                           {}
func (silent) Info(...any)                            {}
func (silent) Warn(...any)                            {}
func (silent) Error(...any)                           {}
func (silent) Fatal(args ...any)                      { fmt.Fprintln(os.Stderr, args...); os.Exit(1) }

// wantErr fails the test unless err is all of the targets.
func wantErr(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("error is %v; want one that is %v", err, target)
		}
	}
}

// wantNot fails the test when err is any of the targets.
func wantNot(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			tb.Errorf("error is %v; want one that is not %v", err, target)
		}
	}
}

// wantRefusal fails the test unless err is of a task that did not run and has not
// failed.
func wantRefusal(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	wantErr(tb, err, targets...)
	if err == nil || asynqlock.IsFailure(nil)(err) {
		tb.Errorf("error is %v; want one that is no failure", err)
	}
}

// wantFailure fails the test unless err counts as a failure.
func wantFailure(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	wantErr(tb, err, targets...)
	if !asynqlock.IsFailure(nil)(err) {
		tb.Errorf("error is %v; want one that is a failure", err)
	}
}

// order is a task about an order.
func order(id string, opts ...asynq.Option) *asynq.Task {
	return asynq.NewTask("order:pay", []byte(`{"order_id":"`+id+`"}`), opts...)
}

// forbidden is a handler that must not run.
func forbidden(tb testing.TB) asynq.Handler {
	return asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		tb.Error("the handler has run")
		return nil
	})
}

// does is a handler that returns what f returns.
func does(f func(ctx context.Context) error) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error { return f(ctx) })
}

func nothing(context.Context) error { return nil }

var (
	contextsMu sync.Mutex
	contexts   = map[string]context.Context{}
)

// taskContext returns the context of a task as asynq makes it, without a deadline:
// it knows the task's id and how often it may be retried. Nothing but a running
// server makes one, so this runs one. It can be used inside a synctest bubble.
func taskContext(tb testing.TB, id string, maxRetry int) context.Context {
	tb.Helper()
	contextsMu.Lock()
	defer contextsMu.Unlock()
	name := fmt.Sprintf("%s/%d", id, maxRetry)
	if ctx, ok := contexts[name]; ok {
		return ctx
	}
	embedded := miniredis.NewMiniRedis()
	if err := embedded.Start(); err != nil {
		tb.Fatal(err)
	}
	defer embedded.Close()
	f := newFarm(tb, embedded.Addr())
	defer f.close()
	caught := make(chan context.Context, 1)
	server := f.start(does(func(ctx context.Context) error {
		caught <- context.WithoutCancel(ctx)
		return nil
	}))
	f.enqueue(order("42", asynq.TaskID(id), asynq.MaxRetry(maxRetry)))
	contexts[name] = await(tb, caught, "a task's context")
	server.Shutdown()
	return contexts[name]
}

// await returns what arrives on a channel.
func await[T any](tb testing.TB, arrivals <-chan T, what string) T {
	tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-arrivals:
		return v
	case <-timer.C:
		tb.Fatalf("still waiting after %v: %s", patience, what)
		panic("unreachable")
	}
}
