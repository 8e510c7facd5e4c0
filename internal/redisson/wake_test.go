package redisson

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// brief is how long a holder keeps what another waits for: long enough for the other
// to have asked once more and gone to sleep. Nothing shows whether it has; if it has not,
// it has the lock sooner than if it had been woken, and only the measured time is less.
const brief = 20 * time.Millisecond

// work takes time, which is all that a holder does with its lock.
func work(d time.Duration) { time.Sleep(d) }

// A pair is a Java thread and a Go process that hand locks to one another.
type pair struct {
	java    javaThread
	l       *core.Locker
	client  redis.UniversalClient // to look at Redis
	servers []*redis.Client       // one of which knows who waits
}

// toGo is how long it takes from Java's unlock to Go's lock, with a fresh lock.
func (p pair) toGo(tb testing.TB, key string, free func(lock string) time.Time) time.Duration {
	tb.Helper()
	lock := "lock:" + key
	p.java.do(tb, "lock", lock)
	got := take(background, p.l, key)
	p.awaitWaiting(tb, lock, 1)
	work(brief)
	began := free(lock)
	g := taken(tb, got)
	succeed(tb, g.lock.Unlock(background))
	return g.at.Sub(began)
}

// toJava is how long it takes from Go's unlock to Java's lock, with a fresh lock.
func (p pair) toJava(tb testing.TB, key string, free func(k *core.Lock) time.Time, opts ...core.Option) time.Duration {
	tb.Helper()
	lock := "lock:" + key
	k := mustLock(tb, p.l, key, opts...)
	got := p.java.begin("lock", lock)
	p.awaitWaiting(tb, lock, 1)
	work(brief)
	began := free(k)
	took := at(tb, await(tb, got)).Sub(began)
	p.java.do(tb, "unlock", lock)
	return took
}

// awaitWaiting waits until n clients are subscribed to a lock's channel.
func (p pair) awaitWaiting(tb testing.TB, lock string, n int64) {
	tb.Helper()
	channel := "redisson_lock__channel:{" + lock + "}"
	redistest.Await(tb, inTheEnd, "somebody to wait for "+lock, func() bool {
		var waiting int64
		for _, server := range p.servers {
			waiting += server.PubSubNumSub(background, channel).Val()[channel]
			waiting += server.PubSubShardNumSub(background, channel).Val()[channel]
		}
		return waiting >= n
	})
}

// unlockInJava frees the lock and tells when it began to.
func (p pair) unlockInJava(tb testing.TB) func(lock string) time.Time {
	return func(lock string) time.Time { return at(tb, p.java.do(tb, "unlock", lock)) }
}

// unlockInGo does the same.
func unlockInGo(tb testing.TB) func(k *core.Lock) time.Time {
	return func(k *core.Lock) time.Time {
		began := time.Now()
		succeed(tb, k.Unlock(background))
		return began
	}
}

// asleep frees a lock when Java surely sleeps. Its first wait may take it long to
// prepare.
func asleep(free func(k *core.Lock) time.Time) func(k *core.Lock) time.Time {
	return func(k *core.Lock) time.Time {
		work(lease / 6)
		return free(k)
	}
}

// wakes measures both directions, and fails where nobody was woken.
func (p pair) wakes(t *testing.T, rounds int) (toGo, toJava []time.Duration) {
	t.Helper()
	stalls := redistest.WatchStalls(t)
	began := time.Now()
	for i := range rounds {
		toGo = append(toGo, p.toGo(t, fmt.Sprint("to Go ", i), p.unlockInJava(t)))
		toJava = append(toJava, p.toJava(t, fmt.Sprint("to Java ", i), unlockInGo(t)))
		if m := max(median(toGo), median(toJava)); i == 2 && m > 20*time.Second {
			t.Fatalf("nobody is woken: %v, %v", toGo, toJava) // not to sleep through all rounds
		}
	}
	t.Logf("Java frees, Go has it: %s", spread(toGo))
	t.Logf("Go frees, Java has it: %s", spread(toJava))
	// Go would ask again after half a second at the earliest, Java after a lease. That
	// most are faster is no chance.
	stood := time.Since(began) - stalls.Since(began)
	if m := max(median(toGo), median(toJava)); m > 300*time.Millisecond+stood {
		t.Errorf("hardly anybody was woken")
	}
	return toGo, toJava
}

func singlePair(t *testing.T, opts ...core.Option) pair {
	t.Helper()
	server := startRedis(t)
	client := server.Client(t)
	java := startJava(t, "address=redis://"+server.Addr()).thread(1)
	return pair{java, onRedis(t, server.Client(t), opts...), client, []*redis.Client{client}}
}

func TestWakeUps(t *testing.T) {
	p := singlePair(t)
	toGo, toJava := p.wakes(t, 150)

	// How it is without a message: the lock is deleted, of which nobody is told.
	deleted := func(lock string) time.Time {
		began := time.Now()
		succeed(t, p.client.Del(background, lock).Err())
		return began
	}
	var goPolls, javaSleeps []time.Duration
	for i := range 7 {
		goPolls = append(goPolls, p.toGo(t, fmt.Sprint("polled ", i), deleted))
	}
	for i := range 3 {
		free := func(k *core.Lock) time.Time { return deleted("lock:" + k.Key()) }
		javaSleeps = append(javaSleeps, p.toJava(t, fmt.Sprint("slept ", i), asleep(free), core.FixedLease(lease)))
	}
	t.Logf("without a message Go has it: %s", spread(goPolls))
	t.Logf("without a message Java has it, with a lease of %v: %s", lease, spread(javaSleeps))
	if median(goPolls) < median(toGo) || median(javaSleeps) < max(median(toJava), lease/2) {
		t.Error("without a message they were as fast")
	}
}
