package core_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Whatever a key contains, its lock works on a cluster, where all names of a lock
// must hash to one slot.
var oddKeys = []string{"plain", "{tag}", "{", "}{", "a{b}c{d}", "%7B", "with space", "new\nline", "\x00", "\xff\xfe", "日本", "redisson_lock__channel:{x}"}

// exercise is what must work on every kind of client.
func exercise(t *testing.T, one, two redis.UniversalClient) {
	holder, waiting := onRedis(t, one), onRedis(t, two)
	for _, key := range oddKeys {
		k := take(t, background, holder, key, core.Lease(10*time.Second))
		in := take(t, k.Context(), holder, key)
		if _, err := waiting.TryLock(background, key); err == nil {
			t.Fatalf("%q: two hold it", key)
		}
		unlock(t, in, k)
		if info, err := waiting.Inspect(background, key); err != nil || info.Locked {
			t.Errorf("%q: %+v, %v; want free", key, info, err)
		}
	}

	// Many locks are renewed, whatever node they are on.
	locks := make([]*core.Lock, 50)
	for i := range locks {
		locks[i] = take(t, background, holder, fmt.Sprint("many", i), core.Lease(12*time.Second))
	}
	awaitRenewals(t, holder, 2, locks...)

	// Each waits for another lock; all are woken.
	var woken atomic.Int32
	got := make(chan error, len(locks))
	for _, k := range locks {
		go func() {
			k, err := waiting.Lock(background, k.Key())
			if err == nil {
				woken.Add(1)
				err = k.Unlock(background)
			}
			got <- err
		}()
	}
	unlock(t, locks...)
	for range locks {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}

	// Locks on several nodes are released in the background, and taken over.
	for _, l := range []*core.Locker{holder, holder, waiting} {
		wantErr(t, l.DoAll(background, oddKeys, nothing, core.BackgroundRelease()))
	}
	m, err := holder.LockAll(background, oddKeys)
	wantErr(t, err)
	wantErr(t, m.Unlock(background))
}

func TestSingleServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	exercise(t, server.Client(t), server.Client(t))
}

func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	exercise(t, cluster.Client(t), cluster.Client(t))
}

func TestRing(t *testing.T) {
	t.Parallel()
	addrs := map[string]string{"a": redistest.Start(t).Addr(), "b": redistest.Start(t).Addr()}
	ring := func() *redis.Ring {
		r := redis.NewRing(&redis.RingOptions{Addrs: addrs})
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	exercise(t, ring(), ring())
}

// Also RESP2, which miniredis and old servers speak.
func TestProtocol2(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	old := func(o *redis.Options) { o.Protocol = 2 }
	exercise(t, server.Client(t, old), server.Client(t, old))
}
