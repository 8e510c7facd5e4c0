//go:build go1.25

package core_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestScriptFlushIsSurvived(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := onRedis(t, server.Client(t))
	k := take(t, background, l, "k", core.Lease(6*time.Second))
	others := make([]*core.Lock, 20)
	for i := range others {
		others[i] = take(t, background, l, "other"+string(rune('a'+i)), core.Lease(6*time.Second))
	}
	monitor := server.Monitor(t)
	server.FlushScripts(t)
	redistest.Await(t, inTheEnd, "renewals after the flush", func() bool {
		n := 0
		for _, line := range monitor.Lines(t) {
			if line.Lua && line.Name() == "pexpire" {
				n++
			}
		}
		return n > len(others)
	})
	in := take(t, k.Context(), l, "k")
	server.FlushScripts(t)
	unlock(t, in, k)
	unlock(t, others...)
}

func TestConnectionsKilledAtRandom(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := server.Proxy(t)
	killAtRandom(t, []*redistest.Proxy{proxy}, []*core.Locker{onRedis(t, proxy.Client(t)), onRedis(t, proxy.Client(t))})
	for _, key := range []string{"a", "b", "c"} {
		awaitFree(t, server.Client(t), key)
	}
}

// killAtRandom has workers take and enter the locks a, b and c while connections
// are cut, and checks that no two are inside one at once.
func killAtRandom(t *testing.T, proxies []*redistest.Proxy, lockers []*core.Locker) {
	t.Helper()
	stop := make(chan struct{})
	var killer, workers sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(rand.IntN(15)) * time.Millisecond):
				proxies[rand.IntN(len(proxies))].KillConnections()
			}
		}
	})
	keys := []string{"a", "b", "c"}
	var inside [3]atomic.Int32
	var done, failed atomic.Int32
	end := time.Now().Add(2 * time.Second)
	latest := time.Now().Add(inTheEnd)
	for i := range 12 {
		locker := lockers[i%len(lockers)]
		workers.Go(func() {
			for time.Now().Before(end) || done.Load() == 0 && time.Now().Before(latest) {
				n := rand.IntN(len(keys))
				err := locker.Do(background, keys[n], func(ctx context.Context) error {
					if inside[n].Add(1) != 1 {
						t.Errorf("two hold %q", keys[n])
					}
					_ = locker.Do(ctx, keys[n], func(context.Context) error { return nil })
					inside[n].Add(-1)
					return nil
				})
				if err == nil {
					done.Add(1)
				} else {
					failed.Add(1)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	killer.Wait()
	t.Logf("%d sections ran, %d were refused", done.Load(), failed.Load())
	if done.Load() == 0 {
		t.Error("nothing ran")
	}
}

func TestInvariant4SilentRedisIsALoss(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	stalls := redistest.WatchStalls(t)
	l := onRedis(t, server.Client(t), core.Timeout(500*time.Millisecond))
	const lease = 1800 * time.Millisecond
	k := take(t, background, l, "k", core.Lease(lease))
	server.Stop(t)
	stopped := time.Now()
	awaitLost(t, k, core.ErrLost)
	// The last renewal was sent before Redis fell silent.
	soonAfter(t, stalls, "the loss was told", stopped, time.Now(), lease)
	wantErr(t, k.Unlock(background), core.ErrLost)

	started := time.Now()
	_, err := l.Lock(background, "k2")
	wantErr(t, err, core.ErrUnavailable)
	wantNot(t, err, core.ErrNotAcquired)
	soonAfter(t, stalls, "a hanging Redis was reported", started, time.Now(), 1500*time.Millisecond)

	// Commands that were sent before the stop run now; none may leave a lock.
	server.Cont(t)
	client := server.Client(t)
	awaitFree(t, client, "k")
	awaitFree(t, client, "k2")
}

func TestRestartIsNoticed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := onRedis(t, server.Client(t))
	k := take(t, background, l, "k", core.Lease(900*time.Millisecond))
	server.Restart(t)
	awaitLost(t, k, core.ErrLost)
	_, err := l.Lock(k.Context(), "k")
	wantErr(t, err, core.ErrLost)
	unlock(t, take(t, background, l, "k"))
}

func TestRedisDown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := onRedis(t, server.Client(t))
	k := take(t, background, l, "held", core.Lease(2*time.Second))
	server.Kill(t)
	started := time.Now()
	_, err := l.Lock(background, "k")
	wantErr(t, err, core.ErrUnavailable)
	wantNot(t, err, core.ErrNotAcquired)
	wantTime(t, "the refused connection was reported", time.Since(started), 0, inTheEnd)
	_, err = l.Inspect(background, "k")
	wantErr(t, err, core.ErrUnavailable)
	awaitLost(t, k, core.ErrLost)
	wantErr(t, k.Unlock(background), core.ErrLost)
}

// A call that was waiting already endures a restart.
func TestWaitingCallOutlivesARestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	holder, waiting := onRedis(t, client), onRedis(t, server.Client(t))
	k := take(t, background, holder, "k", core.FixedLease(20*time.Second))
	got := make(chan error, 1)
	go func() {
		k, err := waiting.Lock(background, "k")
		if err == nil {
			err = k.Unlock(background)
		}
		got <- err
	}()
	awaitSubscriber(t, client, "k")
	server.Restart(t) // and the lock is gone
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(inTheEnd):
		t.Fatal("the waiting call did not get the lock")
	}
	_ = k.Abort(background)
}

func awaitSubscriber(tb testing.TB, client redis.UniversalClient, key string) {
	tb.Helper()
	channel := "redisson_lock__channel:{lock:" + key + "}"
	redistest.Await(tb, inTheEnd, "a subscription", func() bool {
		n, err := client.PubSubNumSub(background, channel).Result()
		return err == nil && n[channel] > 0
	})
}

// A wake-up lost in a connection that is dead but open costs a second at most.
func TestInvariant6BlackHoledSubscription(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := server.Proxy(t)
	client := server.Client(t)
	stalls := redistest.WatchStalls(t)
	holder, waiting := onRedis(t, client), onRedis(t, proxy.Client(t))
	k := take(t, background, holder, "k")
	got := make(chan time.Time, 1)
	go func() {
		k, err := waiting.Lock(background, "k")
		got <- time.Now()
		if err != nil {
			t.Error(err)
			return
		}
		unlock(t, k)
	}()
	awaitSubscriber(t, client, "k")
	if proxy.BlackHoleConnections("subscribe") != 1 {
		t.Fatal("no subscription connection")
	}
	released := time.Now()
	unlock(t, k)
	soonAfter(t, stalls, "the waiting call had the lock", released, <-got, 1200*time.Millisecond)
}

func TestWakeUpIsPrompt(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	stalls := redistest.WatchStalls(t)
	client := server.Client(t)
	holder, waiting := onRedis(t, client), onRedis(t, server.Client(t))
	k := take(t, background, holder, "k")
	got := make(chan time.Time, 1)
	go func() {
		k, err := waiting.Lock(background, "k")
		got <- time.Now()
		if err != nil {
			t.Error(err)
			return
		}
		unlock(t, k)
	}()
	awaitSubscriber(t, client, "k")
	released := time.Now()
	unlock(t, k)
	// Without the wake-up it would take half a second at least.
	soonAfter(t, stalls, "the waiting call had the lock", released, <-got, 400*time.Millisecond)
}
