package core_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// keysOf returns a key on the master of a first one, and a key on another master.
func keysOf(t *testing.T, cluster *redistest.Cluster) (one, other string) {
	t.Helper()
	one = "key"
	first := cluster.MasterFor(t, "lock:"+one)
	for i := range 1000 {
		other = fmt.Sprint("other", i)
		if cluster.MasterFor(t, "lock:"+other) != first {
			return one, other
		}
	}
	t.Fatal("all keys are on one master")
	return "", ""
}

// A dead shard: its locks are lost, in time, and work again after the failover; the
// locks of other shards notice nothing.
func TestInvariant8DeadShardDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	// Else Redis itself refuses everything from when it notices until the failover.
	cluster := redistest.StartCluster(t, 3, 1, "--cluster-require-full-coverage", "no")
	stalls := redistest.WatchStalls(t)
	l := onRedis(t, cluster.Client(t), core.Timeout(2*time.Second))
	dead, alive := keysOf(t, cluster)
	const lease = 3 * time.Second // shorter than a failover
	doomed := take(t, background, l, dead, core.Lease(lease))
	kept := take(t, background, l, alive, core.Lease(2*lease))
	unlock(t, take(t, background, l, alive+"x"))

	master := cluster.MasterFor(t, "lock:"+dead)
	master.Stop(t) // hangs, which is worse than gone
	stopped := time.Now()
	for range 20 {
		started := time.Now()
		in := take(t, kept.Context(), l, alive)
		unlock(t, in)
		soonAfter(t, stalls, "a lock of another shard", started, time.Now(), 500*time.Millisecond)
	}
	awaitLost(t, doomed, core.ErrLost)
	soonAfter(t, stalls, "the loss was told", stopped, time.Now(), lease)
	awaitRenewals(t, l, 2, kept)

	cluster.AwaitFailover(t, "lock:"+dead, master)
	failedOver := time.Now()
	redistest.Await(t, inTheEnd, "the shard's locks to work again", func() bool {
		k, err := l.TryLock(background, dead)
		return err == nil && k.Unlock(background) == nil
	})
	t.Logf("%v after the failover its locks worked again", time.Since(failedOver).Round(time.Millisecond))
	unlock(t, kept)
	_ = doomed.Abort(background)
	master.Cont(t)
}

func awaitClusterSubscriber(t *testing.T, cluster *redistest.Cluster, key string) {
	t.Helper()
	channel := "redisson_lock__channel:{lock:" + key + "}"
	redistest.Await(t, inTheEnd, "a subscription", func() bool {
		for _, node := range cluster.Nodes() {
			if n, err := node.Client(t).PubSubNumSub(background, channel).Result(); err == nil && n[channel] > 0 {
				return true
			}
		}
		return false
	})
}

// While the slot of a lock moves, Redis refuses its scripts for a moment. A fresh
// call waits that out rather than fail.
func TestFreshCallWhileTheSlotMoves(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := server.Proxy(t)
	l := onRedis(t, proxy.Client(t))
	moving := proxy.Answer(sha(t, "acquire"), "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", redistest.Times(3))
	k := take(t, background, l, "k")
	leaving := proxy.Answer(sha(t, "release"), "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", redistest.Times(3))
	unlock(t, k)
	if moving.Count() != 3 || leaving.Count() != 3 {
		t.Errorf("%d and %d refusals; want 3 each", moving.Count(), leaving.Count())
	}
	if !isFree(t, server.Client(t), "k") {
		t.Error("the lock is still held")
	}
}

// A slot that moves takes its held locks along; calls that wait for them go on
// waiting, and get them.
func TestSlotMovesUnderALock(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	l, waiting := onRedis(t, cluster.Client(t)), onRedis(t, cluster.Client(t))
	one, other := keysOf(t, cluster)
	k := take(t, background, l, one, core.Lease(12*time.Second))
	got := make(chan error, 1)
	go func() {
		k, err := waiting.Lock(background, one)
		if err == nil {
			err = k.Unlock(background)
		}
		got <- err
	}()
	awaitClusterSubscriber(t, cluster, one)
	cluster.MoveSlot(t, "lock:"+one, cluster.MasterFor(t, "lock:"+other), nil)
	awaitRenewals(t, l, 2, k)
	select {
	case err := <-got:
		t.Fatalf("the waiting call got it meanwhile: %v", err)
	default:
	}
	in := take(t, k.Context(), l, one)
	unlock(t, in, k)
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(inTheEnd):
		t.Error("the waiting call did not get the lock")
	}
}

// While a slot of many keys moves, its locks are renewed where they are by then.
func TestRenewalFollowsALockThatHasMoved(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2, 1)
	const lease = 12 * time.Second
	plain := onRedis(t, cluster.Client(t), core.Lease(lease))
	replicated := onRedis(t, cluster.Client(t), core.Lease(lease), core.Replicas(1, 500*time.Millisecond))
	one, other := keysOf(t, cluster)
	from, to := cluster.MasterFor(t, "lock:"+one), cluster.MasterFor(t, "lock:"+other)
	for _, l := range []*core.Locker{plain, replicated} {
		k := take(t, background, l, one)
		cluster.MoveSlot(t, "lock:"+one, to, func() {
			migrate(t, cluster, "lock:"+one, from, to)
			awaitRenewals(t, l, 2, k)
		})
		unlock(t, k)
		from, to = to, from
	}
}

// migrate moves the keys of a slot that is open for it.
func migrate(t *testing.T, cluster *redistest.Cluster, key string, from, to *redistest.Server) {
	t.Helper()
	client := from.Client(t)
	keys, err := client.ClusterGetKeysInSlot(background, cluster.Slot(t, key), 100).Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys of the slot: %q, %v", keys, err)
	}
	host, port, err := net.SplitHostPort(to.Addr())
	if err != nil {
		t.Fatal(err)
	}
	args := []any{"migrate", host, port, "", 0, 5000, "keys"}
	for _, k := range keys {
		args = append(args, k)
	}
	if err := client.Do(background, args...).Err(); err != nil {
		t.Fatal(err)
	}
}

// A client that reads from replicas gets READONLY, and not MOVED, from a node that was demoted.
// Taken out, renewals go on to that node, and held locks are lost.
func TestPlannedFailoverBesideAClientThatReadsFromReplicas(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 1)
	for name, configure := range map[string]func(*redis.ClusterOptions){
		"ReadOnly":       func(o *redis.ClusterOptions) { o.ReadOnly = true },
		"RouteByLatency": func(o *redis.ClusterOptions) { o.RouteByLatency = true },
		"RouteRandomly":  func(o *redis.ClusterOptions) { o.RouteRandomly = true },
	} {
		if name == "RouteByLatency" && underRaceDetector() {
			continue
		}
		l := onRedis(t, cluster.Client(t, configure), core.Lease(3*time.Second))
		var locks []*core.Lock
		for i := range 12 {
			locks = append(locks, take(t, background, l, fmt.Sprint(name, i)))
		}
		cluster.Failover(t, "lock:"+locks[0].Key())
		awaitRenewals(t, l, 4, locks...)
		unlock(t, locks...)
		cluster.AwaitStable(t)
	}
}
