package redisson

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// startRedis runs a server for both sides.
func startRedis(tb testing.TB) *redistest.Server {
	tb.Helper()
	needJava(tb)
	return redistest.Start(tb)
}

// onRedis is a Locker that is closed at the end of the test: to Redis, a process.
func onRedis(tb testing.TB, client redis.UniversalClient, opts ...core.Option) *core.Locker {
	tb.Helper()
	l, err := core.New(client, append([]core.Option{core.Logger(slog.New(slog.DiscardHandler))}, opts...)...)
	succeed(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(background, inTheEnd)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return l
}

// A grant is what became of a Lock.
type grant struct {
	lock *core.Lock
	at   time.Time
	err  error
}

// take locks in another goroutine.
func take(ctx context.Context, l *core.Locker, key string, opts ...core.Option) <-chan grant {
	c := make(chan grant, 1)
	go func() {
		k, err := l.Lock(ctx, key, opts...)
		c <- grant{k, time.Now(), err}
	}()
	return c
}

// taken is take that must succeed.
func taken(tb testing.TB, c <-chan grant) grant {
	tb.Helper()
	g := receive(tb, c)
	succeed(tb, g.err)
	return g
}

// mustLock locks, and does not wait for longer than a test.
func mustLock(tb testing.TB, l *core.Locker, key string, opts ...core.Option) *core.Lock {
	tb.Helper()
	return taken(tb, take(background, l, key, opts...)).lock
}

func succeed(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func wantErr(tb testing.TB, got, want error) {
	tb.Helper()
	if !errors.Is(got, want) {
		tb.Fatalf("error %v, want %v", got, want)
	}
}

// wantBusy has a lock be refused.
func wantBusy(tb testing.TB, l *core.Locker, key string, opts ...core.Option) {
	tb.Helper()
	k, err := l.Lock(background, key, append(opts, core.NoWait())...)
	if err == nil {
		_ = k.Unlock(background)
	}
	wantErr(tb, err, core.ErrNotAcquired)
}

// awaitLost waits until the holder is told, and returns when that was.
func awaitLost(tb testing.TB, k *core.Lock) time.Time {
	tb.Helper()
	receive(tb, k.Context().Done())
	now := time.Now()
	wantErr(tb, context.Cause(k.Context()), core.ErrLost)
	return now
}
