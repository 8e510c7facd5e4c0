//go:build go1.25

package core_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Storms of calls over several Lockers, on one Redis and on a cluster: one function runs at a time, none runs beside a result, and all
// get what a run has returned.
func TestOnceInAStorm(t *testing.T) {
	t.Parallel()
	server, cluster := redistest.Start(t), redistest.StartCluster(t, 3, 0)
	for name, client := range map[string]func() redis.UniversalClient{
		"alone":   func() redis.UniversalClient { return user(t, server, rightsInTheFAQ(t)...) },
		"cluster": func() redis.UniversalClient { return cluster.Client(t) },
	} {
		t.Run(name, func(t *testing.T) {
			var lockers []*core.Locker
			for range 4 {
				lockers = append(lockers, onRedis(t, client(), core.KeepFor(time.Hour)))
			}
			const keys = 20
			var busy [keys]atomic.Bool
			var results [keys]atomic.Int64
			var calls sync.WaitGroup
			for i := range 64 {
				calls.Go(func() {
					l := lockers[i%len(lockers)]
					for range keys {
						k := rand.N(keys)
						got, err := core.Once(background, l, "k"+strconv.Itoa(k), func(context.Context) (int64, error) {
							if busy[k].Swap(true) || results[k].Load() != 0 {
								t.Error("a run beside another, or after the result")
							}
							defer busy[k].Store(false)
							_, _ = l.Inspect(background, "k"+strconv.Itoa(k)) // takes a while
							if rand.N(3) > 0 {
								return 0, errBoom
							}
							n := 1 + rand.Int64()
							results[k].Store(n)
							return n, nil
						})
						if err != nil && err != errBoom || err == nil && got != results[k].Load() {
							t.Errorf("%d, %v; want %d", got, err, results[k].Load())
						}
					}
				})
			}
			calls.Wait()
		})
	}
}

// Nobody knows what a process has done that was killed in the middle.
func TestOnceOfAKilledProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	stalls := redistest.WatchStalls(t)
	process := startHolder(t, onceEnv, server)
	l := onRedis(t, server.Client(t), core.KeepFor(kept))
	never := func(context.Context) (int, error) { t.Error("it ran"); return 0, nil }
	_, err := core.Once(background, l, "k", never, core.NoWait())
	wantBusy(t, err)
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_, err = core.Once(background, l, "k", never, core.RefuseUnknown())
	wantErr(t, err, core.ErrOutcomeUnknown)
	soonAfter(t, stalls, "the outcome was unknown", killed, time.Now(), holderLease+1500*time.Millisecond)
	attempt := func(ctx context.Context) (int, error) { return core.AttemptOf(ctx), nil }
	for range 2 {
		if got, err := core.Once(background, l, "k", attempt, core.RefuseUnknown(), core.NoWait()); err == nil || got != 0 {
			t.Errorf("%d, %v", got, err)
		}
	}
	for range 2 {
		if got, err := core.Once(background, l, "k", attempt); got != 2 || err != nil {
			t.Errorf("attempt %d, %v", got, err)
		}
	}
}
