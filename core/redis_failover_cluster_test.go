package core_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A client of Sentinels that is a cluster's, and reads from replicas: all that a lock needs goes to the master, also to the
// next one.
func TestClusterClientOfSentinels(t *testing.T) {
	t.Parallel()
	const lease = time.Minute
	s := redistest.StartSentinel(t, 2)
	outside := onSentinel(t, s)
	lockers, held := map[string]*core.Locker{}, map[string]*core.Lock{}
	for name, route := range map[string]func(*redis.FailoverOptions){
		"the master":  func(*redis.FailoverOptions) {},
		"the nearest": func(o *redis.FailoverOptions) { o.RouteByLatency = true },
		"any":         func(o *redis.FailoverOptions) { o.RouteRandomly = true },
	} {
		if name == "the nearest" && underRaceDetector() {
			continue
		}
		o := &redis.FailoverOptions{MasterName: s.MasterName(), SentinelAddrs: s.Addrs(), ContextTimeoutEnabled: true}
		route(o)
		client := redis.NewFailoverClusterClient(o)
		t.Cleanup(func() { client.Close() })
		l := onRedis(t, client, core.Lease(lease))
		if err := l.Ping(background); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		k := take(t, background, l, name)
		if _, err := outside.TryLock(background, name); err == nil {
			t.Errorf("%s: two have the lock", name)
		}
		waiting := queueUp(t, l, name)
		unlock(t, k)
		unlock(t, (<-waiting).lock)
		lockers[name], held[name] = l, take(t, background, l, name)
	}
	awaitCopied(t, s, slices.Collect(maps.Keys(held))...)
	s.Failover(t)
	s.AwaitStable(t)
	for name, l := range lockers {
		var next *core.Lock
		redistest.Await(t, inTheEnd, "a lock by way of "+name, func() (ok bool) {
			var err error
			next, err = l.Lock(background, "next")
			return err == nil
		})
		unlock(t, next)
		if err := held[name].Context().Err(); err != nil {
			t.Errorf("%s: the lock is gone: %v", name, context.Cause(held[name].Context()))
		}
		if _, err := outside.TryLock(background, name); err == nil {
			t.Errorf("%s: two have the lock after the failover", name)
		}
		unlock(t, held[name])
	}
}
