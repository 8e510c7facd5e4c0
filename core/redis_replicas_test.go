package core_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// replicaOf is a replica in step with its master.
func replicaOf(t *testing.T, master *redistest.Server) *redistest.Server {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica := redistest.Start(t, "--replicaof", host, port)
	client := replica.Client(t)
	redistest.Await(t, inTheEnd, "the replica to be in step", func() bool {
		return strings.Contains(client.Info(background, "replication").Val(), "master_link_status:up")
	})
	// Both call it up a second before it is sent anything.
	source := master.Client(t)
	redistest.Await(t, inTheEnd, "the replica to hear its master", func() bool {
		pipe := source.Pipeline()
		pipe.Publish(background, "redistest", "")
		heard := pipe.Do(background, "wait", 1, 100)
		_, _ = pipe.Exec(background)
		n, err := heard.Int()
		return err == nil && n == 1
	})
	return replica
}

// Taken out, the lock is handed out while the replica has never heard of it, and a
// failover gives it to somebody else.
func TestReplicasHaveTheLockBeforeItIsHandedOut(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := replicaOf(t, master)
	patient := func(o *redis.Options) { o.ReadTimeout = time.Minute }
	l := onRedis(t, master.Client(t, patient), core.Replicas(1, 20*time.Second), core.Timeout(30*time.Second),
		core.Lease(2*time.Minute))
	unlock(t, take(t, background, l, "k")) // Redis knows the scripts now
	replica.Stop(t)
	taken := make(chan error, 1)
	go func() {
		k, err := l.Lock(background, "k")
		if err == nil {
			err = k.Unlock(background)
		}
		taken <- err
	}()
	awaitTaken(t, master.Client(t), "k")
	select {
	case err := <-taken:
		t.Fatalf("Lock returned (%v) before the replica could have it", err)
	case <-time.After(50 * time.Millisecond):
	}
	replica.Cont(t)
	if err := <-taken; err != nil {
		t.Error(err)
	}
}

// A second copy of an acquisition has nothing to change, but writes, so that WAIT after it
// asks for what the first one wrote.
func TestReplicasVouchForASecondCopy(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := replicaOf(t, master)
	proxy := master.Proxy(t)
	l := onRedis(t, proxy.Client(t), core.Replicas(1, 300*time.Millisecond), core.FixedLease(time.Minute))
	unlock(t, take(t, background, l, "warm-up"))
	lost := proxy.DropReply(sha(t, "acquire"))
	k := take(t, background, l, "k")
	if isFree(t, replica.Client(t), "k") {
		t.Error("the replica does not have the lock")
	}
	unlock(t, k)
	replica.Stop(t)
	again := proxy.DropReply(sha(t, "acquire"))
	_, err := l.Lock(background, "k")
	wantErr(t, err, core.ErrUnavailable)
	if lost.Count() != 1 || again.Count() != 1 {
		t.Error("no reply was lost")
	}
	replica.Cont(t)
	awaitFree(t, master.Client(t), "k")
}

func awaitTaken(t *testing.T, client redis.UniversalClient, key string) {
	t.Helper()
	redistest.Await(t, inTheEnd, "lock "+key+" to be taken", func() bool { return !isFree(t, client, key) })
}

// Taken out, a lock that no replica has stays held for nobody until its lease ends.
func TestReplicasShortfallGivesTheLockBack(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := replicaOf(t, master)
	stalls := redistest.WatchStalls(t)
	l := onRedis(t, master.Client(t), core.Replicas(1, 700*time.Millisecond), core.Lease(time.Minute))
	unlock(t, take(t, background, l, "k"))
	outer := take(t, background, l, "outer")

	replica.Stop(t)
	started := time.Now()
	_, err := l.Lock(background, "k")
	wantErr(t, err, core.ErrUnavailable)
	wantNot(t, err, core.ErrNotAcquired)
	if err == nil || !strings.Contains(core.Detail(err), "0 of 1 replicas") {
		t.Errorf("error %v; want one that counts the replicas", err)
	}
	soonAfter(t, stalls, "the error came", started, time.Now(), 3*time.Second)
	awaitFree(t, master.Client(t), "k")

	// A re-entry that does not count leaves the outer lock as it was.
	_, err = l.Lock(outer.Context(), "outer")
	wantErr(t, err, core.ErrUnavailable)
	redistest.Await(t, inTheEnd, "one hold", func() bool {
		n, err := outer.Count(background)
		return err == nil && n == 1
	})
	// A lock that somebody else holds is busy, whatever the replicas do.
	_, err = l.TryLock(background, "outer")
	wantBusy(t, err)

	replica.Cont(t)
	unlock(t, outer)
	unlock(t, take(t, background, l, "k"))
}

// Taken out, the holder trusts a renewal that the next master may never have seen.
func TestReplicasAreNeededToRenew(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := replicaOf(t, master)
	stalls := redistest.WatchStalls(t)
	const lease = 4800 * time.Millisecond
	l := onRedis(t, master.Client(t), core.Replicas(1, 600*time.Millisecond), core.Lease(lease))
	k := take(t, background, l, "k")
	awaitRenewals(t, l, 2, k)
	replica.Stop(t)
	stopped := time.Now()
	awaitLost(t, k, core.ErrLost)
	soonAfter(t, stalls, "the loss was told", stopped, time.Now(), lease+lease/4)
	wantErr(t, k.Refresh(background), core.ErrLost)
	awaitFree(t, master.Client(t), "k")
	replica.Cont(t)
}

func TestReplicasFollowAClusterThatMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 1)
	client := cluster.Client(t)
	l := onRedis(t, client, core.Replicas(1, 3*time.Second))
	held := make([]*core.Lock, 6)
	for i := range held {
		key := fmt.Sprint("held", i)
		held[i] = take(t, background, l, key)
		master := cluster.MasterFor(t, "lock:"+key)
		for _, r := range cluster.ReplicasOf(t, master) {
			reader := r.Client(t)
			conn := reader.Conn() // READONLY is a state of the connection
			if err := conn.ReadOnly(background).Err(); err != nil {
				t.Fatal(err)
			}
			if n, err := conn.Exists(background, "lock:"+key).Result(); err != nil || n != 1 {
				t.Errorf("%s: a replica has %d of it, %v", key, n, err)
			}
			_ = conn.Close()
		}
	}

	one, other := keysOf(t, cluster)
	unlock(t, take(t, background, l, one))
	cluster.MoveSlot(t, "lock:"+one, cluster.MasterFor(t, "lock:"+other), nil)
	unlock(t, take(t, background, l, one))

	cluster.Failover(t, "lock:"+held[0].Key())
	unlock(t, take(t, held[0].Context(), l, held[0].Key()))
	unlock(t, held...)
}

// What WAIT itself answers is no proof that nothing was done.
func TestReplicasWithoutPermissionToWait(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limited := user(t, server, "~lock:*", "&*", "+@all", "-wait")
	l := onRedis(t, limited, core.Replicas(1, 100*time.Millisecond))
	_, err := l.Lock(background, "k")
	wantErr(t, err, core.ErrUnavailable)
	if err == nil || !strings.Contains(core.Detail(err), "NOPERM") {
		t.Errorf("error %v; want one that names NOPERM", err)
	}
	awaitFree(t, server.Client(t), "k")
}

func TestReplicasAfterAScriptFlush(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replicaOf(t, master)
	client := master.Client(t)
	l := onRedis(t, client, core.Replicas(1, 600*time.Millisecond), core.Lease(4800*time.Millisecond))
	k := take(t, background, l, "k")
	for range 2 {
		if err := client.ScriptFlush(background).Err(); err != nil {
			t.Fatal(err)
		}
		unlock(t, take(t, background, l, "other"))
		awaitRenewals(t, l, 2, k)
	}
	unlock(t, k)
}

// Nothing of it is on the wire when it is off, and one command more when it is on.
func TestReplicasCostNothingWhenOff(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replicaOf(t, master)
	client := master.Client(t)
	for name, opts := range map[string][]core.Option{"off": nil, "on": {core.Replicas(1, time.Second)}} {
		l := onRedis(t, client, opts...)
		unlock(t, take(t, background, l, "first")) // loads the scripts
		monitor := master.Monitor(t)
		unlock(t, take(t, background, l, "k"))
		var got []string
		for _, line := range monitor.Stop(t) {
			if !line.Lua && (name == "off" || line.Name() == "evalsha" || line.Name() == "wait") { // the clocks are asked for, once
				got = append(got, line.Name())
			}
		}
		want := map[string]string{"off": "evalsha evalsha", "on": "evalsha wait evalsha"}[name]
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestReplicasRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "localhost:1", ReadTimeout: 300 * time.Millisecond})
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "localhost:1"}})
	t.Cleanup(func() { _, _ = client.Close(), ring.Close() })
	for want, try := range map[string]func() (*core.Locker, error){
		"core: Replicas(0, 1s): give at least 1 replica and at least 1ms": func() (*core.Locker, error) {
			return core.New(client, core.Replicas(0, time.Second))
		},
		"core: Replicas(1, 1µs): give at least 1 replica and at least 1ms": func() (*core.Locker, error) {
			return core.New(client, core.Replicas(1, time.Microsecond))
		},
		"core: Replicas(1, 200ms): the time must be less than Timeout, which is 100ms": func() (*core.Locker, error) {
			return core.New(client, core.Replicas(1, 200*time.Millisecond), core.Timeout(100*time.Millisecond))
		},
		"core: Replicas(1, 300ms): the time must be less than the client's ReadTimeout, which is 300ms": func() (*core.Locker, error) {
			return core.New(client, core.Replicas(1, 300*time.Millisecond))
		},
		"core: Replicas needs a *redis.Client or *redis.ClusterClient, got *redis.Ring": func() (*core.Locker, error) {
			return core.New(ring, core.Replicas(1, 100*time.Millisecond))
		},
		"core: NewQuorum takes no Replicas: its members vouch for one another": func() (*core.Locker, error) {
			var members []redis.UniversalClient
			for i := range 3 {
				c := redis.NewClient(&redis.Options{Addr: fmt.Sprint("localhost:", i+1)})
				t.Cleanup(func() { _ = c.Close() })
				members = append(members, c)
			}
			return core.NewQuorum(members, core.Replicas(1, 100*time.Millisecond))
		},
	} {
		if l, err := try(); l != nil || err == nil || err.Error() != want {
			t.Errorf("got %v, %v; want the error %q", l, err, want)
		}
	}
	if err := adapter.Validate(core.Replicas(1, time.Second)); err == nil {
		t.Error("a single call takes Replicas; it is an option of New")
	}
}
