//go:build go1.25

package core_test

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// traveller is a Locker whose calls can be made to travel together.
type traveller struct {
	*core.Locker
	server *redistest.Server
	client *redis.Client
}

func newTraveller(t *testing.T, server *redistest.Server, client *redis.Client) traveller {
	admin := server.Client(t)
	for _, name := range []string{acquire, release, renew, inspect, "take_all", "free_all", "renew_all"} {
		text, _ := script(t, name)
		if err := admin.ScriptLoad(background, text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	l := traveller{onRedis(t, client, core.Timeout(inTheEnd)), server, client}
	redistest.Await(t, inTheEnd, "the Locker to know that one server has all keys", func() bool {
		before := scriptsRun(t, admin)
		l.lockAll(t, numbered(0, 40), func(k *core.Lock) { unlock(t, k) })
		return scriptsRun(t, admin)-before < 60
	})
	return l
}

// lockAll locks keys at once, and hands each lock on as soon as it is there.
func (l traveller) lockAll(t *testing.T, keys []string, then func(*core.Lock)) {
	t.Helper()
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			k, err := l.Lock(background, key)
			if err != nil {
				t.Error(err)
				return
			}
			then(k)
		})
	}
	all.Wait()
}

// ofCallers is on the stack of every call of a Locker or Lock, but not of the Locker's own
// workers, which come and go.
const ofCallers = "latchkey/core.(*Loc"

// together has calls travel together: the server runs no script for a while, and
// others are under way when they come. It returns how many scripts that took. It counts the
// calls of the whole process: its tests do not run beside others.
func (l traveller) together(t *testing.T, calls ...func()) int {
	t.Helper()
	admin := l.server.Client(t)
	before := scriptsRun(t, admin)
	if err := admin.Do(background, "client", "pause", time.Minute.Milliseconds(), "write").Err(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range uint32(sideBySide) { // one after the other: at once they would go together
		all.Go(func() {
			if _, err := l.Inspect(background, "k"); err != nil {
				t.Error(err)
			}
		})
		redistest.Await(t, inTheEnd, "this to be under way", func() bool {
			stats := l.client.PoolStats()
			return stats.TotalConns-stats.IdleConns > n
		})
	}
	others := blockedIn(ofCallers)
	var ended atomic.Int32
	for _, call := range calls {
		all.Go(func() {
			defer ended.Add(1)
			call()
		})
	}
	redistest.Await(t, inTheEnd, "all to wait for an answer, or to have theirs", func() bool {
		return int(ended.Load())+blockedIn(ofCallers)-others >= len(calls)
	})
	if err := admin.Do(background, "client", "unpause").Err(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	return scriptsRun(t, admin) - before - sideBySide
}

// scriptsRun is how many the server has run.
func scriptsRun(t *testing.T, client *redis.Client) int {
	t.Helper()
	n := 0
	stats := client.Info(background, "commandstats").Val()
	for _, m := range regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
		calls, _ := strconv.Atoi(m[1])
		n += calls
	}
	return n
}

// tries locks all keys together. Of a key that is named twice one call has
// to get the lock.
func (l traveller) tries(t *testing.T, keys ...string) (map[string]*core.Lock, map[string]error) {
	t.Helper()
	var mu sync.Mutex
	locks, errs := map[string]*core.Lock{}, map[string]error{}
	var calls []func()
	for _, key := range keys {
		calls = append(calls, func() {
			k, err := l.TryLock(background, key)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				errs[key] = err
			case locks[key] != nil:
				t.Errorf("%s was locked twice", key)
			default:
				locks[key] = k
			}
		})
	}
	l.together(t, calls...)
	return locks, errs
}

func numbered(from, to int) []string {
	var keys []string
	for i := from; i < to; i++ {
		keys = append(keys, fmt.Sprint("k", i))
	}
	return keys
}

// Taken out, what is wrong with one lock is wrong with all that travel with it; or
// two calls both get one that was free when their command arrived.
func TestCallsThatTravelTogetherHaveOutcomesOfTheirOwn(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	l := newTraveller(t, server, server.Client(t))
	held := take(t, background, onRedis(t, admin), "held")
	defer unlock(t, held)
	if err := admin.SAdd(background, "lock:text", "x").Err(); err != nil {
		t.Fatal(err)
	}
	keys := append(numbered(0, 60), "held", "text", "again", "again", "again", "again", "again", "again")
	began := time.Now()
	locks, errs := l.tries(t, keys...)
	if len(locks) != 61 {
		t.Errorf("%d locks, want 61", len(locks))
	}
	for key, want := range map[string]error{"held": core.ErrNotAcquired, "again": core.ErrNotAcquired, "text": core.ErrUnavailable} {
		wantErr(t, errs[key], want)
	}
	if err := errs["text"]; err == nil || !strings.Contains(core.Detail(err), "WRONGTYPE") {
		t.Errorf("error %v; want WRONGTYPE", err)
	}
	tokens := map[string]int64{}
	for key, k := range locks {
		tokens[key] = k.Token()
		if ttl, err := k.TTL(background); err != nil || ttl < 29*time.Second-time.Since(began) {
			t.Errorf("%s lasts %v, %v", key, ttl, err)
		}
	}

	admin.Del(background, "lock:k1", "lock:k2")
	admin.SAdd(background, "lock:k2", "x")
	var mu sync.Mutex
	var calls []func()
	ended := map[string]error{}
	for key, k := range locks {
		calls = append(calls, func() {
			err := k.Unlock(background)
			mu.Lock()
			defer mu.Unlock()
			ended[key] = err
		})
	}
	l.together(t, calls...)
	wantErr(t, ended["k1"], core.ErrLost)
	wantErr(t, ended["k2"], core.ErrUnavailable)
	for key, err := range ended {
		if key != "k1" && key != "k2" && (err != nil || !isFree(t, admin, key)) {
			t.Errorf("%s was not released: %v", key, err)
		}
	}
	admin.Del(background, "lock:k2")

	// All are free when their command arrives.
	again, _ := l.tries(t, append(numbered(0, 60), numbered(20, 40)...)...)
	for key, k := range again {
		if k.Token() <= tokens[key] {
			t.Errorf("token of %s: %d after %d", key, k.Token(), tokens[key])
		}
		unlock(t, k)
	}
	if len(again) != 60 {
		t.Errorf("%d locks, want 60", len(again))
	}
}

// Taken out, a release that travels with others frees the lock for all, and not for the call that waits.
func TestReleasesThatTravelTogetherLookWhoWaits(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	l := newTraveller(t, server, server.Client(t))
	locks, _ := l.tries(t, append(numbered(0, 20), "k")...)
	waiting := make(chan outcome, 1)
	other := onRedis(t, server.Client(t))
	go func() {
		k, err := other.Lock(background, "k")
		waiting <- outcome{lock: k, err: err}
	}()
	awaitSubscriber(t, admin, "k")
	redistest.Await(t, inTheEnd, "the call to wait", func() bool { return admin.ZCard(background, waitQueue).Val() == 1 })
	told := admin.Subscribe(background, wakeupOfK)
	defer told.Close()
	_, err := told.Receive(background)
	succeed(t, err)
	var calls []func()
	for _, k := range locks {
		calls = append(calls, func() { unlock(t, k) })
	}
	l.together(t, calls...)
	succeed(t, admin.Publish(background, wakeupOfK, "end").Err())
	for {
		m, err := told.ReceiveMessage(background)
		succeed(t, err)
		if m.Payload == "end" {
			break
		} else if m.Payload == "0" {
			t.Error("all were told that the lock is free")
		}
	}
	o := <-waiting
	succeed(t, o.err)
	unlock(t, o.lock)
}

// Taken out, nobody gets a lock as long as somebody asks for one that the user may
// not have.
func TestPermissionsConcernOneOfTheCallsThatTravelTogether(t *testing.T) {
	server := redistest.Start(t)
	l := newTraveller(t, server, user(t, server, "~lock:k*", "~lock:{lock:k*", "~lock:latchkey:*", "&*", "+@all"))
	locks, errs := l.tries(t, append(numbered(0, 30), "another")...)
	if err := errs["another"]; err == nil || !strings.Contains(core.Detail(err), "NOPERM") {
		t.Errorf("error %v; want NOPERM", err)
	}
	if len(locks) != 30 {
		t.Errorf("%d locks, want 30: %v", len(locks), errs)
	}
	for _, k := range locks {
		unlock(t, k)
	}
}

// Taken out, a client that is none for clusters cannot take two locks at once from a
// node of one.
func TestCallsToANodeOfAClusterTravelApart(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	node := cluster.MasterFor(t, "lock:k0")
	l := traveller{Locker: onRedis(t, node.Client(t))}
	var keys []string
	for i := 0; len(keys) < 20; i++ {
		if key := fmt.Sprint("k", i); cluster.MasterFor(t, "lock:"+key) == node {
			keys = append(keys, key)
		}
	}
	l.lockAll(t, keys, func(k *core.Lock) { unlock(t, k) })
}

// A proxy that spreads keys over servers sends a command to the server of its first
// key. Taken out, locks are written where nobody else looks for them: two get one.
func TestCallsThroughAShardingProxyTravelApart(t *testing.T) {
	t.Parallel()
	servers := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	addr := redistest.StartShardingProxy(t, servers...)
	client := servers[0].Client(t, func(o *redis.Options) { o.Addr = addr })
	l := traveller{Locker: onRedis(t, client)}
	keys := numbered(0, 100)
	for range 3 {
		l.lockAll(t, keys, func(k *core.Lock) { unlock(t, k) })
	}
	var mu sync.Mutex
	var locks []*core.Lock
	l.lockAll(t, keys, func(k *core.Lock) {
		mu.Lock()
		defer mu.Unlock()
		locks = append(locks, k)
	})
	for _, k := range locks {
		name := "lock:" + k.Key()
		if isFree(t, servers[redistest.ShardOf(name, 2)].Client(t), k.Key()) {
			t.Errorf("%s is not where it belongs", name)
		}
		unlock(t, k)
	}
}

// merged is a hook that collects what commands which do several calls end with, as
// go-redis sees it.
type merged struct {
	mu   sync.Mutex
	errs []error
}

func (h *merged) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *merged) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "evalsha" && cmd.Args()[2].(int) > 4 { // keys
			h.mu.Lock()
			defer h.mu.Unlock()
			h.errs = append(h.errs, err)
		}
		return err
	}
}

func (h *merged) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *merged) seen() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.errs)
}

// go-redis drops its connections to a server that has become a replica when a command
// ends with READONLY: the address may be another server's by now.
// Taken out, it does not see that in the reply to many renewals.
func TestGoRedisSeesThatTheServerBecameAReplica(t *testing.T) {
	t.Parallel()
	server, master := redistest.Start(t), redistest.Start(t)
	hook := &merged{}
	client := server.Client(t)
	admin := server.Client(t)
	text, _ := script(t, "renew_all")
	if err := admin.ScriptLoad(background, text).Err(); err != nil {
		t.Fatal(err)
	}
	l := onRedis(t, client, core.Lease(6*time.Second))
	client.AddHook(hook)
	var locks []*core.Lock
	for _, key := range numbered(0, 20) {
		locks = append(locks, take(t, background, l, key))
	}
	redistest.Await(t, inTheEnd, "renewals to travel together", func() bool { return len(hook.seen()) > 0 })
	before := len(hook.seen())
	host, port, _ := strings.Cut(master.Addr(), ":")
	// Its master says nothing, so that it keeps its locks.
	for _, err := range []error{
		admin.ConfigSet(background, "replica-serve-stale-data", "yes").Err(),
		master.Client(t).Do(background, "client", "pause", 60000, "all").Err(),
		admin.ReplicaOf(background, host, port).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	redistest.Await(t, inTheEnd, "the next of them", func() bool { return len(hook.seen()) > before+1 })
	if err := hook.seen()[before+1]; !redis.IsReadOnlyError(err) {
		t.Errorf("they ended with %v", err)
	}
	if err := admin.ReplicaOf(background, "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	unlock(t, locks...)
}

// Taken out, renewals that travel together cut the lease that a Redisson thread has chosen.
func TestRenewalsThatTravelTogetherCutNoLease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	hook := &merged{}
	client, admin := server.Client(t), server.Client(t)
	text, _ := script(t, "renew_all")
	succeed(t, admin.ScriptLoad(background, text).Err())
	l := onRedis(t, client, core.Lease(6*time.Second))
	client.AddHook(hook)
	var locks []*core.Lock
	for _, key := range numbered(0, 20) {
		locks = append(locks, take(t, background, l, key))
	}
	k := locks[7]
	succeed(t, admin.HIncrBy(background, "lock:k7", k.Owner(), 1).Err())
	succeed(t, admin.PExpire(background, "lock:k7", time.Hour).Err())
	before := len(hook.seen())
	awaitRenewals(t, l, 2, locks...)
	if len(hook.seen()) == before {
		t.Error("none travelled with others")
	}
	if ttl, err := k.TTL(background); ttl < time.Minute || err != nil {
		t.Errorf("it lasts %v, %v", ttl, err)
	}
	succeed(t, admin.HIncrBy(background, "lock:k7", k.Owner(), -1).Err())
	unlock(t, locks...)
}
