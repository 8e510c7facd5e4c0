package core_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// What a lock takes that nobody else wants. The bounds leave 1 allocation and 2 % of the bytes for what differs by chance. A tenth of the bytes, and 9 allocations, are go-redis's own.
func TestMemoryOfACycle(t *testing.T) {
	build, _ := debug.ReadBuildInfo()
	if slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector has pools drop some of what they keep")
	}
	server := redistest.Start(t)
	plain := onRedis(t, server.Client(t))
	obedient := onRedis(t, server.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true }))
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	outer := take(t, background, plain, "outer")
	defer unlock(t, outer)
	keys := make([]string, 8)
	for i := range keys {
		keys[i] = "of many:" + strconv.Itoa(i)
	}

	type taken interface{ Unlock(context.Context) error }
	lock := func(l *core.Locker, ctx context.Context, key string, opts ...core.Option) func() (taken, error) {
		return func() (taken, error) { return l.Lock(ctx, key, opts...) }
	}
	// Options of middleware are added up for each call.
	asMiddleware := []core.Option{adapter.Fallback(core.Wait(time.Second), core.MaxWaiters(256)), core.Name("orders")}
	for name, c := range map[string]struct {
		take               func() (taken, error)
		allocations, bytes uint64
	}{
		"Lock":                             {lock(plain, background, "k"), 34, 3_050},
		"Lock of a request":                {lock(plain, ctx, "k"), 36, 3_200},
		"Lock, ContextTimeoutEnabled":      {lock(obedient, background, "k"), 34, 3_050},
		"Lock of a request, of the latter": {lock(obedient, ctx, "k"), 36, 3_200},
		"Lock of middleware":               {lock(plain, ctx, "k", asMiddleware...), 38, 3_700},
		"TryLock":                          {func() (taken, error) { return plain.TryLock(ctx, "k") }, 35, 3_100},
		"re-entry":                         {lock(plain, outer.Context(), "outer"), 51, 3_950},
		"LockAll of 8":                     {func() (taken, error) { return plain.LockAll(ctx, keys) }, 90, 16_500},
	} {
		t.Run(name, func(t *testing.T) {
			allocations, bytes := perCycle(func() {
				k, err := c.take()
				if err == nil {
					err = k.Unlock(background)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
			if allocations > c.allocations || bytes > c.bytes {
				t.Errorf("%d allocations, %d bytes; want %d and %d at most", allocations, bytes, c.allocations, c.bytes)
			}
		})
	}
}

// perCycle is what a cycle takes at its best. Now and then there is more to do: a connection, a
// renewal; and the race detector empties pools.
func perCycle(cycle func()) (allocations, bytes uint64) {
	const cycles = 100
	for i := range 10 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range cycles {
			cycle()
		}
		runtime.ReadMemStats(&after)
		a, b := (after.Mallocs-before.Mallocs)/cycles, (after.TotalAlloc-before.TotalAlloc)/cycles
		if i == 0 || a < allocations {
			allocations, bytes = a, b
		}
	}
	return allocations, bytes
}

// A lock that is held keeps nothing of what it took to take it.
func TestMemoryOfAHeldLock(t *testing.T) {
	l := onRedis(t, redistest.Start(t).Client(t))
	unlock(t, take(t, background, l, "k")) // a connection, and all else that is there once
	heap := func() uint64 {
		for range 3 { // finalizers and pools keep some for a while
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	locks := make([]*core.Lock, 2000)
	before := heap()
	for i := range locks {
		locks[i] = take(t, background, l, "k:"+strconv.Itoa(i), core.Lease(time.Hour)) // none is renewed meanwhile
	}
	if bytes := int64(heap()-before) / int64(len(locks)); bytes > 575 {
		t.Errorf("%d bytes", bytes)
	}
	for _, k := range locks {
		unlock(t, k)
	}
}

// A client that nobody uses any more is collected with all it has, although nobody has closed it.
func TestClientThatNobodyClosesIsCollected(t *testing.T) {
	t.Parallel()
	server, collected := redistest.Start(t), make(chan struct{})
	func() {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 3, ClientSideCacheConfig: &redis.CacheConfig{}})
		l, err := core.New(client, quiet)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			unlock(t, take(t, background, l, "k"))
		}
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
		runtime.AddCleanup(client, func(done chan struct{}) { close(done) }, collected)
	}()
	giveUp := time.After(inTheEnd)
	for {
		runtime.GC()
		select {
		case <-collected:
			return
		case <-giveUp:
			t.Fatal("the client stays")
		case <-time.After(time.Millisecond):
		}
	}
}
