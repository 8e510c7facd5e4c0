package core_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A failover is replication, which is asynchronous, and clients that hear of it
// one after the other. Without [core.Replicas] these tests show what follows from
// that: a lock that the new master knows goes on; one that it does not know is
// reported lost at the holder's next renewal there, and at the end of its lease at
// the latest if there is none. In between a second may hold it, with a greater
// fencing token. With Replicas there is no such time.

// late is how long after its time a goroutine may notice something, stalls apart.
const late = 250 * time.Millisecond

// onSentinel is a Locker with a failover client of its own, as another process has.
func onSentinel(t *testing.T, s *redistest.Sentinel, opts ...core.Option) *core.Locker {
	t.Helper()
	return onRedis(t, s.Client(t), opts...)
}

// awaitCopied waits until every replica has the locks.
func awaitCopied(t *testing.T, s *redistest.Sentinel, keys ...string) {
	t.Helper()
	for _, replica := range s.Replicas(t) {
		client := replica.Client(t)
		for _, key := range keys {
			redistest.Await(t, inTheEnd, "lock "+key+" on a replica", func() bool { return !isFree(t, client, key) })
		}
	}
}

// awaitRenewed waits until the lock will last longer than a lease that began at
// since: this very server has renewed it after that.
func awaitRenewed(t *testing.T, server *redis.Client, key string, since time.Time, lease time.Duration) {
	t.Helper()
	redistest.Await(t, inTheEnd, "a renewal of "+key, func() bool {
		asked := time.Now()
		ttl, err := server.PTTL(background, "lock:"+key).Result()
		return err == nil && asked.Add(ttl).After(since.Add(lease+10*time.Millisecond))
	})
}

// wantHeld fails the test when the lock is lost before until.
func wantHeld(t *testing.T, k *core.Lock, until time.Time) {
	t.Helper()
	select {
	case <-k.Context().Done():
		t.Fatalf("lock %q was lost: %v", k.Key(), context.Cause(k.Context()))
	case <-time.After(time.Until(until)):
	}
}

// whenTold sends the time at which the holder is told that the lock has ended.
func whenTold(k *core.Lock) <-chan time.Time {
	told := make(chan time.Time, 1)
	go func() {
		<-k.Context().Done()
		told <- time.Now()
	}()
	return told
}

// wantTold returns when the holder was told that the lock is lost, which is within
// d of since.
func wantTold(t *testing.T, stalls *redistest.Stalls, k *core.Lock, told <-chan time.Time, since time.Time, d time.Duration) time.Time {
	t.Helper()
	select {
	case at := <-told:
		wantErr(t, context.Cause(k.Context()), core.ErrLost)
		soonAfter(t, stalls, "the loss was told", since, at, d)
		return at
	case <-time.After(inTheEnd):
		t.Fatalf("nobody told the holder of %q", k.Key())
		return time.Time{}
	}
}

// takeOver takes the lock as soon as it can be had, and says when it was.
func takeOver(t *testing.T, l *core.Locker, key string) (*core.Lock, time.Time) {
	t.Helper()
	var k *core.Lock
	redistest.Await(t, time.Minute, "lock "+key+" to change hands", func() bool {
		var err error
		k, err = l.TryLock(background, key)
		return err == nil
	})
	return k, time.Now()
}

// turn is a lock that a call waited for, and when it came.
type turn struct {
	lock *core.Lock
	at   time.Time
}

// queueUp waits for the lock in another goroutine.
func queueUp(t *testing.T, l *core.Locker, key string, opts ...core.Option) <-chan turn {
	got := make(chan turn, 1)
	go func() {
		k, err := l.Lock(background, key, opts...)
		if err != nil {
			t.Errorf("the waiting call: %v", err)
		}
		got <- turn{k, time.Now()}
	}()
	return got
}

// handOver unlocks a lock that a call waits for, which then has it within that time.
func handOver(t *testing.T, stalls *redistest.Stalls, k *core.Lock, got <-chan turn, within time.Duration) *core.Lock {
	t.Helper()
	released := time.Now()
	unlock(t, k)
	next := <-got
	if next.lock == nil {
		t.FailNow()
	}
	soonAfter(t, stalls, "the waiting call had the lock", released, next.at, within)
	if next.lock.Token() <= k.Token() {
		t.Errorf("token %d after token %d", next.lock.Token(), k.Token())
	}
	return next.lock
}

var errTaken = errors.New("it")

// Whoever holds a lock that the new master knows goes on holding it there, and
// whoever waits for it goes on waiting there.
func TestSentinelFailoverTakesLocksAlong(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1)
	stalls := redistest.WatchStalls(t)
	old := s.Master(t)
	const lease = 12 * time.Second
	l := onSentinel(t, s)
	k := take(t, background, l, "k", core.Lease(lease))
	got := queueUp(t, onSentinel(t, s), "k")
	awaitSubscriber(t, old.Client(t), "k")
	awaitCopied(t, s, "k")

	client := s.Failover(t).Client(t)
	over := time.Now()
	awaitRenewed(t, client, "k", over, lease)
	s.AwaitStable(t)
	awaitSubscriber(t, client, "k")

	// Who still speaks to the old master is refused, not let in.
	_, err := onRedis(t, old.Client(t)).TryLock(background, "new")
	wantErr(t, err, core.ErrUnavailable)
	if err == nil || !strings.Contains(core.Detail(err), "READONLY") {
		t.Errorf("the old master answered with %v", err)
	}
	_, err = onSentinel(t, s).TryLock(background, "k")
	wantBusy(t, err)

	awaitRenewals(t, l, 1, k)
	// Without the wake-up it would take half a second at least.
	unlock(t, handOver(t, stalls, k, got, 400*time.Millisecond))
	if !isFree(t, client, "k") {
		t.Error("the new master still has the lock")
	}
}

// The same when the master crashes, and comes back, empty and for a while in the
// belief that it is the master. With Replicas the holder need not hope that the
// lock was replicated.
func TestSentinelCrashTakesLocksAlong(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 2)
	stalls := redistest.WatchStalls(t)
	old := s.Master(t)
	const lease = 24 * time.Second // two thirds of it are longer than a failover
	taken := time.Now()
	k := take(t, background, onSentinel(t, s), "k", core.Lease(lease))
	safe := take(t, background, onSentinel(t, s, core.Replicas(1, 2*time.Second)), "safe", core.Lease(lease))
	got := queueUp(t, onSentinel(t, s), "k")
	awaitSubscriber(t, old.Client(t), "k")
	awaitCopied(t, s, "k", "safe")

	// There is nobody to renew with when the time has come: it is tried again.
	wantHeld(t, k, taken.Add(lease/3-200*time.Millisecond))
	old.Kill(t)
	killed := time.Now()
	client := s.AwaitFailover(t, old).Client(t)
	awaitRenewed(t, client, "k", killed, lease)

	other := onSentinel(t, s)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			// go-redis closes connections when it hears of a new master.
			_, err := other.TryLock(background, "safe")
			if !errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrUnavailable) {
				stopped <- fmt.Errorf("a second one asked for the lock and got %w", cmp.Or(err, errTaken))
				return
			}
			select {
			case <-stop:
				stopped <- nil
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	old.Restart(t)
	s.AwaitStable(t)
	close(stop)
	if err := <-stopped; err != nil {
		t.Errorf("while the old master came back: %v", err)
	}
	wantHeld(t, k, taken.Add(lease+time.Second))
	wantHeld(t, safe, time.Now())
	unlock(t, handOver(t, stalls, k, got, 1200*time.Millisecond), safe)
	next := take(t, background, other, "safe")
	if next.Token() <= safe.Token() {
		t.Errorf("token %d after token %d", next.Token(), safe.Token())
	}
	unlock(t, next)
}

// What was granted in the last moment before a crash may be unknown to the new
// master, which then grants it again: until the first holder's next renewal, a
// third of its lease after the last, two believe that they hold it. The holder's
// own deadline bounds that, whatever happens, and the token tells the two apart.
func TestSentinelCrashLosesWhatWasNotReplicated(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1)
	stalls := redistest.WatchStalls(t)
	first, second := onSentinel(t, s), onSentinel(t, s)
	old := s.Master(t)
	s.CutReplication(t)
	const lease = 9 * time.Second // a third of it is longer than a failover
	began := time.Now()
	k := take(t, background, first, "k", core.Lease(lease))
	told := whenTold(k)
	old.Kill(t)
	other, acquired := takeOver(t, second, "k")

	ended := wantTold(t, stalls, k, told, began, lease)
	renewal := began.Add(lease / 3)
	if acquired.After(renewal) {
		renewal = acquired // the failover took long: it is repeated all the time
	}
	soonAfter(t, stalls, "after the renewal that had to notice it the loss was told", renewal, ended, time.Second)
	t.Logf("two believed it for %v", max(ended.Sub(acquired), 0).Round(time.Millisecond))
	if other.Token() <= k.Token() {
		t.Errorf("token %d after token %d", other.Token(), k.Token())
	}

	// The first one's release is not the second one's.
	wantErr(t, k.Unlock(background), core.ErrLost)
	if n, err := other.Count(background); n != 1 || err != nil {
		t.Errorf("the second has %d holds, %v", n, err)
	}
	unlock(t, other)
}

// Replicas closes that window: what no replica has was never granted, and without
// a renewal that a replica has the holder is told before the new master may let
// anybody else in.
func TestSentinelReplicasGrantNothingThatACrashCouldLose(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1)
	stalls := redistest.WatchStalls(t)
	old := s.Master(t)
	client := old.Client(t)
	const lease = 4 * time.Second
	safe := onSentinel(t, s, core.Replicas(1, 200*time.Millisecond), core.Lease(lease))
	kept := take(t, background, safe, "kept")
	told := whenTold(kept)
	s.CutReplication(t)
	cut := time.Now()
	_, err := safe.Lock(background, "new", core.Lease(time.Hour))
	wantErr(t, err, core.ErrUnavailable)
	awaitFree(t, client, "new")
	// The master renews what its successor will know nothing of.
	awaitRenewed(t, client, "kept", cut, lease)

	old.Kill(t)
	now := s.AwaitFailover(t, old)
	if !isFree(t, now.Client(t), "new") {
		t.Error("the new master has the lock that was refused")
	}
	other, acquired := takeOver(t, onSentinel(t, s), "kept")
	ended := wantTold(t, stalls, kept, told, cut, lease)
	soonAfter(t, stalls, "the first one was told", acquired, ended, late)
	if other.Token() <= kept.Token() {
		t.Errorf("token %d after token %d", other.Token(), kept.Token())
	}
	unlock(t, other)
	unlock(t, take(t, background, onSentinel(t, s), "new"))

	// The new master has no replica yet.
	_, err = safe.Lock(background, "new")
	wantErr(t, err, core.ErrUnavailable)
	old.Restart(t)
	s.AwaitStable(t)
	unlock(t, take(t, background, safe, "new"))
}

// A client that is cut off from the sentinels together with the old master goes on
// renewing there, for as long as that lasts: a holder without Replicas is never
// told, while the new master grants its lock again. With Replicas the old master's
// word counts for nothing any more, and the holder is told in time.
func TestSentinelPartition(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1)
	stalls := redistest.WatchStalls(t)
	old := s.Master(t)
	proxies := s.Proxies(t)
	behind := func(opts ...core.Option) *core.Locker {
		return onRedis(t, s.Client(t, func(o *redis.FailoverOptions) { o.Dialer = proxies.Dial }), opts...)
	}
	const lease = 6 * time.Second
	plain := take(t, background, behind(), "plain", core.Lease(lease))
	safe := take(t, background, behind(core.Replicas(1, 200*time.Millisecond)), "safe", core.Lease(lease))
	told := whenTold(safe)
	awaitCopied(t, s, "plain", "safe")

	t.Cleanup(func() {
		for _, addr := range s.Addrs() {
			proxies[addr].BlackHole(false)
			// go-redis's Close waits forever for a silent connection in use.
			proxies[addr].KillConnections()
		}
	})
	for _, addr := range s.Addrs() {
		proxies[addr].BlackHole(true)
	}
	s.KeepOldMaster(t)
	s.Failover(t)
	over := time.Now()

	second := onSentinel(t, s)
	other, acquired := takeOver(t, second, "safe")
	ended := wantTold(t, stalls, safe, told, over, lease)
	soonAfter(t, stalls, "the first one was told", acquired, ended, late)
	another, _ := takeOver(t, second, "plain")
	awaitRenewed(t, old.Client(t), "plain", time.Now(), lease)
	if plain.Context().Err() != nil {
		t.Error("the holder without Replicas was told as well: this is no partition")
	}
	if another.Token() <= plain.Token() || other.Token() <= safe.Token() {
		t.Errorf("tokens %d and %d after %d and %d", another.Token(), other.Token(), plain.Token(), safe.Token())
	}
	unlock(t, other, another, plain)
}
