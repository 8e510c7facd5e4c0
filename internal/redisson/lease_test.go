//go:build go1.25

package redisson

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// watched is a pair of which each side has a short lease.
func watched(t *testing.T) (p pair, server *redistest.Server) {
	t.Helper()
	server = startRedis(t)
	client := server.Client(t)
	l := onRedis(t, server.Client(t), core.Lease(lease))
	return pair{startWatched(t, server).thread(1), l, client, []*redis.Client{client}}, server
}

func startWatched(tb testing.TB, server *redistest.Server) *java {
	tb.Helper()
	return startJava(tb, "address=redis://"+server.Addr(), "watchdog="+inMillis(lease))
}

// Who holds a lock for several leases keeps the other side out.
func TestWatchdogs(t *testing.T) {
	t.Parallel()
	const lease, wait = 2 * lease, 6 * lease
	server := startRedis(t)
	java := startJava(t, "address=redis://"+server.Addr(), "watchdog="+inMillis(lease))
	client, holder := server.Client(t), java.thread(1)
	l := onRedis(t, server.Client(t), core.Lease(lease))
	k := mustLock(t, l, "go")
	holder.do(t, "lock", "lock:java")
	var all sync.WaitGroup
	watch := func(what, lock string) {
		least, most := time.Hour, time.Duration(0)
		for end := time.After(wait); ; {
			ttl := client.PTTL(background, lock).Val()
			least, most = min(least, ttl), max(most, ttl)
			select {
			case <-end:
				t.Logf("%s: held for %v, between %v and %v of the lease of %v were left", what, wait, least, most, lease)
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	all.Go(func() { watch("Java's watchdog", "lock:java") })
	all.Go(func() { watch("Go's watchdog", "lock:go") })
	got := take(background, l, "java", core.Wait(wait))
	refused := java.thread(2).begin("tryLock", "lock:go", wait.Milliseconds())
	all.Wait()
	wantErr(t, receive(t, got).err, core.ErrNotAcquired)
	if had := await(t, refused); had != "false" {
		t.Errorf("tryLock in Java: %s", had)
	}
	holder.gives(t, 1, "count", "lock:java")
	succeed(t, k.Unlock(background))
	holder.do(t, "unlock", "lock:java")
}

// Who dies frees the lock for the other side when its lease ends, and not before.
func TestDeath(t *testing.T) {
	t.Parallel()
	stalls := redistest.WatchStalls(t)
	p, server := watched(t)
	patient := onRedis(t, server.Client(t)) // with a lease of 30 s of its own
	ends := func(what string, from, at time.Time, left time.Duration) {
		t.Helper()
		t.Logf("%s, %v before its lease ends: the other side has the lock after %s ms", what, left, inMs(at.Sub(from)))
		if at.Sub(from) < left-20*time.Millisecond {
			t.Error("too early")
		}
		if ran := stalls.Without(from, at); ran > left+10*time.Second {
			t.Errorf("too late: the machine ran for %v", ran)
		}
	}
	left := func(lock string) time.Duration { return p.client.PTTL(background, lock).Val() }

	doomed := startWatched(t, server)
	doomed.thread(1).do(t, "lock", "lock:k")
	got := take(background, patient, "k")
	p.awaitWaiting(t, "lock:k", 1)
	doomed.kill()
	began, rest := time.Now(), left("lock:k")
	g := taken(t, got)
	ends("Java is killed", began, g.at, rest)
	succeed(t, g.lock.Unlock(background))

	kill := startHolder(t, server)
	had := p.java.begin("lock", "lock:"+mortal)
	p.awaitWaiting(t, "lock:"+mortal, 1)
	kill()
	began, rest = time.Now(), left("lock:"+mortal)
	ends("Go is killed", began, at(t, await(t, had)), rest)
	p.java.do(t, "unlock", "lock:"+mortal)

	paused := startWatched(t, server)
	paused.thread(1).do(t, "lock", "lock:k")
	paused.signal(t, "STOP")
	began, rest = time.Now(), left("lock:k")
	g = taken(t, take(background, patient, "k"))
	ends("Java is paused", began, g.at, rest)
	paused.signal(t, "CONT")
	paused.thread(1).throws(t, notOwner, "unlock", "lock:k")
	paused.kill()
	succeed(t, g.lock.Refresh(background)) // of which that took nothing
	succeed(t, g.lock.Unlock(background))

	began = time.Now()
	p.java.do(t, "lock", "lock:k", lease.Milliseconds())
	g = taken(t, take(background, patient, "k"))
	ends("lock(leaseTime)", began, g.at, lease)
	p.java.throws(t, notOwner, "unlock", "lock:k")
	succeed(t, g.lock.Refresh(background))
	succeed(t, g.lock.Unlock(background))

	began = time.Now()
	k := mustLock(t, patient, "k", core.FixedLease(lease))
	ends("FixedLease", began, at(t, p.java.do(t, "lock", "lock:k")), lease)
	wantErr(t, k.Unlock(background), core.ErrLost)
	p.java.gives(t, 1, "count", "lock:k")
	p.java.do(t, "unlock", "lock:k")

	began = time.Now()
	succeed(t, mustLock(t, patient, "k", core.KeepFor(lease)).Unlock(background))
	p.java.gives(t, true, "isLocked", "lock:k")
	p.java.gives(t, false, "tryLock", "lock:k")
	ends("KeepFor", began, at(t, p.java.do(t, "lock", "lock:k")), lease)
	p.java.do(t, "unlock", "lock:k")

	succeed(t, mustLock(t, patient, "k", core.KeepFor(time.Hour)).Unlock(background))
	p.java.gives(t, true, "forceUnlock", "lock:k")
	p.java.gives(t, true, "tryLock", "lock:k")
}

// startHolder runs a process of its own that holds the lock mortal. It returns what
// kills it.
func startHolder(tb testing.TB, server *redistest.Server) (kill func()) {
	tb.Helper()
	binary, err := os.Executable()
	succeed(tb, err)
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), holderEnv+"="+server.Addr())
	cmd.Stderr = os.Stderr
	_, err = cmd.StdinPipe()
	succeed(tb, err)
	stdout, err := cmd.StdoutPipe()
	succeed(tb, err)
	succeed(tb, cmd.Start())
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait()
	})
	tb.Cleanup(kill)
	if said, err := bufio.NewReader(stdout).ReadString('\n'); said != "held\n" {
		tb.Fatalf("the holder says %q, %v", said, err)
	}
	return kill
}
