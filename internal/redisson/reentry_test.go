package redisson

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Each side sees how deep the other holds a lock.
func TestCounts(t *testing.T) {
	p := singlePair(t)
	other := p.java.thread(2)

	for want := 1; want <= 3; want++ {
		p.java.do(t, "lock", "lock:java")
		info, err := p.l.Inspect(background, "java")
		if err != nil || !info.Locked || info.Count != want || info.Owner != p.java.owner(t) {
			t.Fatalf("Java holds it %d deep as %s, Inspect says %+v, %v", want, p.java.owner(t), info, err)
		}
		t.Logf("Java holds it %d deep; Inspect: %+v", want, info)
	}
	wantBusy(t, p.l, "java")
	for want := 2; want >= 0; want-- {
		p.java.do(t, "unlock", "lock:java")
		info, err := p.l.Inspect(background, "java")
		if err != nil || info.Count != want || info.Locked != (want > 0) {
			t.Fatalf("Java holds it %d deep, Inspect says %+v, %v", want, info, err)
		}
	}

	outer := mustLock(t, p.l, "go")
	inner, err := p.l.Lock(outer.Context(), "go")
	succeed(t, err)
	p.java.gives(t, true, "isLocked", "lock:go")
	p.java.gives(t, false, "isHeld", "lock:go")
	p.java.gives(t, 0, "count", "lock:go") // it is the count of the thread that asks
	p.java.gives(t, false, "tryLock", "lock:go")
	p.java.throws(t, notOwner, "unlock", "lock:go")
	if ttl := p.java.ttl(t, "lock:go"); ttl <= 0 || ttl > 30*time.Second {
		t.Errorf("remainTimeToLive: %v", ttl)
	}
	fields := p.client.HGetAll(background, "lock:go").Val()
	t.Logf("Go holds it 2 deep; remainTimeToLive: %v; in Redis: %v", p.java.ttl(t, "lock:go"), fields)
	if fields[outer.Owner()] != "2" {
		t.Errorf("in Redis: %v, owner %s", fields, outer.Owner())
	}
	succeed(t, inner.Unlock(background))
	p.java.gives(t, true, "isLocked", "lock:go")
	succeed(t, outer.Unlock(background))
	p.java.gives(t, false, "isLocked", "lock:go")
	other.gives(t, true, "tryLock", "lock:go")
}

// Java and Go enter in the name of one Java thread, in any order, and count alike. A
// Go call that waits meanwhile has the lock after the last.
func TestOneOwner(t *testing.T) {
	p := singlePair(t)
	stranger := p.java.thread(2)
	owner := p.java.owner(t)
	for _, key := range []string{"JGgj", "JGjg", "GJjg", "GJgj", "JGJGgjgj", "GGJJjgjg", "JJGgjj"} { // capitals enter
		lock := "lock:" + key
		var held []*core.Lock
		var got <-chan grant
		count := 0
		for i, step := range key {
			switch step {
			case 'J':
				p.java.do(t, "lock", lock)
				count++
			case 'G':
				k := mustLock(t, p.l, key, core.Owner(owner), core.NoWait())
				succeed(t, k.Refresh(background))
				held = append(held, k)
				count++
			case 'j':
				p.java.do(t, "unlock", lock)
				count--
			case 'g':
				succeed(t, held[0].Unlock(background)) // the outermost first, which is the harder order
				held = held[1:]
				count--
			}
			if i == 0 {
				got = take(background, p.l, key)
				p.awaitWaiting(t, lock, 1)
			}
			if count == 0 {
				continue
			}
			p.java.gives(t, count, "count", lock)
			if info, err := p.l.Inspect(background, key); err != nil || info.Owner != owner || info.Count != count {
				t.Fatalf("%s, step %d: Inspect says %+v, %v; want %d", key, i+1, info, err, count)
			}
			stranger.gives(t, false, "tryLock", lock)
		}
		succeed(t, taken(t, got).lock.Unlock(background))
	}
}

// What docs/migrating.md warns of, where a lock has an owner on both sides.
func TestOneOwnerHasItsLimits(t *testing.T) {
	t.Parallel()
	server := startRedis(t)
	thread := startJava(t, "address=redis://"+server.Addr(), "watchdog=4000").thread(1)
	client := server.Client(t)
	l := onRedis(t, client)
	owner := core.Owner(thread.owner(t))
	const watchdog = 4 * time.Second

	t.Run("one unlock too many takes Go's hold", func(t *testing.T) {
		thread.do(t, "lock", "lock:k")
		k := mustLock(t, l, "k", owner)
		thread.do(t, "unlock", "lock:k")
		succeed(t, k.Refresh(background))
		thread.do(t, "unlock", "lock:k")
		wantErr(t, k.Refresh(background), core.ErrLost)
		wantErr(t, k.Unlock(background), core.ErrLost)
		thread.throws(t, notOwner, "unlock", "lock:k")
	})
	t.Run("a fixed lease stays counted", func(t *testing.T) {
		thread.do(t, "lock", "lock:k")
		k := mustLock(t, l, "k", owner, core.FixedLease(time.Second))
		awaitLost(t, k)
		began := time.Now()
		thread.do(t, "unlock", "lock:k")
		thread.gives(t, true, "isLocked", "lock:k")
		g := taken(t, take(background, l, "k"))
		t.Logf("with nobody inside it was busy for %s ms; lockWatchdogTimeout is %v", inMs(g.at.Sub(began)), watchdog)
		succeed(t, g.lock.Unlock(background))
	})
	t.Run("Java's lease and ours", func(t *testing.T) {
		thread.do(t, "lock", "lock:k", 8000)
		k := mustLock(t, l, "k", owner, core.Lease(12*time.Second))
		within(t, "Go's lease", thread.ttl(t, "lock:k"), 8*time.Second+1, 12*time.Second)
		thread.do(t, "lock", "lock:k", 8000)
		within(t, "Java's, shorter", thread.ttl(t, "lock:k"), time.Millisecond, 8*time.Second)
		redistest.Await(t, inTheEnd, "Go to renew", func() bool { return thread.ttl(t, "lock:k") > 8*time.Second })
		thread.do(t, "lock", "lock:k", 20_000)
		succeed(t, k.Refresh(background))
		within(t, "Java's, longer", thread.ttl(t, "lock:k"), 13*time.Second, 20*time.Second)
		for range 3 {
			thread.do(t, "unlock", "lock:k")
		}
		succeed(t, k.Unlock(background))
		thread.gives(t, false, "isLocked", "lock:k")
	})
	t.Run("a short leaseTime ends the lock under Go", func(t *testing.T) {
		k := mustLock(t, l, "k", owner, core.Lease(12*time.Second))
		thread.do(t, "lock", "lock:k", 500)
		awaitLost(t, k)
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
	t.Run("so does a short lockWatchdogTimeout, after Java's unlock", func(t *testing.T) {
		thread.do(t, "lock", "lock:k")
		k := mustLock(t, l, "k", owner, core.Lease(4*watchdog))
		thread.do(t, "unlock", "lock:k")
		within(t, "Java's lease", thread.ttl(t, "lock:k"), time.Millisecond, watchdog)
		awaitLost(t, k)
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}

func within(tb testing.TB, what string, d, least, most time.Duration) {
	tb.Helper()
	if d < least || d > most {
		tb.Errorf("%s: %v, want %v to %v", what, d, least, most)
	}
}
