package core_test

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// The tests in the files redis_*_test.go run on real redis-server processes.

// inTheEnd ends a test that waits in vain, on a machine that may be busy with
// anything. It is shorter than the usual lease, 30 s: what ends a lock within it was
// not the end of its lease.
const inTheEnd = 25 * time.Second

// soonAfter fails the test unless something took place before another, or within a
// time after it; that in which the machine stood still is taken off.
func soonAfter(tb testing.TB, stalls *redistest.Stalls, what string, from, at time.Time, within time.Duration) {
	tb.Helper()
	if ran := stalls.Without(from, at); ran > within {
		tb.Errorf("%s after %v, of which the machine ran for %v; want %v at most", what, at.Sub(from), ran, within)
	}
}

// sha is the digest by which Redis knows one of our scripts.
func sha(tb testing.TB, name string) redistest.Match {
	tb.Helper()
	digests, err := redistest.Digests(name)
	if err != nil {
		tb.Fatal(err)
	}
	return redistest.Script(digests...)
}

// unhurried is a Timeout for a machine that may be busy with anything.
const unhurried = 8 * time.Second

// onRedis is a Locker that is closed, and must be drained, at the end of the test.
func onRedis(tb testing.TB, client redis.UniversalClient, opts ...core.Option) *core.Locker {
	tb.Helper()
	l, err := core.New(client, append([]core.Option{quiet, core.Timeout(unhurried)}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	closeAtEnd(tb, l)
	return l
}

func closeAtEnd(tb testing.TB, l *core.Locker) {
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(background, inTheEnd)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
}

// quiet keeps the log of expected trouble out of the test's.
var quiet = core.Logger(slog.New(slog.DiscardHandler))

// isFree asks Redis itself, not through the Locker under test.
func isFree(tb testing.TB, client redis.UniversalClient, key string) bool {
	tb.Helper()
	n, err := client.Exists(background, "lock:"+key).Result()
	return err == nil && n == 0
}

// awaitFree waits until the lock is free in Redis.
func awaitFree(tb testing.TB, client redis.UniversalClient, key string) {
	tb.Helper()
	redistest.Await(tb, inTheEnd, "lock "+key+" to be free", func() bool { return isFree(tb, client, key) })
}

// awaitLost waits until the lock's context says why it ended.
func awaitLost(tb testing.TB, k *core.Lock, want error) {
	tb.Helper()
	select {
	case <-k.Context().Done():
		wantErr(tb, context.Cause(k.Context()), want)
	case <-time.After(inTheEnd):
		tb.Fatalf("nobody told the holder within %v", inTheEnd)
	}
}

// awaitRenewals waits until l has renewed each of its locks n times more, and fails the
// test when one is lost. Of two, one began after the call.
func awaitRenewals(tb testing.TB, l *core.Locker, n int, locks ...*core.Lock) {
	tb.Helper()
	renewals := func() map[string]int {
		of := map[string]int{}
		for _, h := range l.Snapshot().Held {
			of[h.Key] = h.Renewals
		}
		return of
	}
	before := renewals()
	redistest.Await(tb, inTheEnd, "renewals", func() bool {
		now := renewals()
		return !slices.ContainsFunc(locks, func(k *core.Lock) bool {
			if k.Context().Err() != nil {
				tb.Fatalf("lock %q was lost: %v", k.Key(), context.Cause(k.Context()))
			}
			return now[k.Key()] < before[k.Key()]+n
		})
	})
}

// patient is a client that does not take a busy machine for a connection that hangs.
func patient(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = inTheEnd, inTheEnd }

// tokenIn is the token that a lock has in Redis.
func tokenIn(client redis.UniversalClient, lock string) int64 {
	fields := client.HGetAll(background, lock).Val()
	held, _, _ := strings.Cut(strings.Trim(fields["mode"], "x+"), " ")
	token, _ := strconv.ParseInt(held, 10, 64)
	return token
}

// underRaceDetector says that the detector would find a race of go-redis' own: it may measure how far a node is while it still sets up the
// client of that node.
func underRaceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
