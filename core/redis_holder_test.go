//go:build go1.25

package core_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// holderEnv makes the test binary a process that only holds a lock, with a lease of
// holderLease, leaderEnv one that leads, and onceEnv one that runs a function once.
const (
	holderEnv   = "LATCHKEY_TEST_HOLDER"
	leaderEnv   = "LATCHKEY_TEST_LEADER"
	onceEnv     = "LATCHKEY_TEST_ONCE"
	holderLease = 6 * time.Second
)

func TestMain(m *testing.M) {
	for env, hold := range map[string]func(l *core.Locker, held func(context.Context) error) error{
		holderEnv: func(l *core.Locker, held func(context.Context) error) error {
			return l.Do(background, "k", held, core.Lease(holderLease))
		},
		leaderEnv: func(l *core.Locker, held func(context.Context) error) error {
			return l.Lead(background, "k", held, core.Lease(holderLease))
		},
		onceEnv: func(l *core.Locker, held func(context.Context) error) error {
			_, err := core.Once(background, l, "k", func(ctx context.Context) (int, error) { return 0, held(ctx) }, core.KeepFor(kept), core.Lease(holderLease))
			return err
		},
	} {
		addr := os.Getenv(env)
		if addr == "" {
			continue
		}
		l, err := core.New(redis.NewClient(&redis.Options{Addr: addr}))
		if err == nil {
			err = hold(l, func(context.Context) error {
				os.Stdout.WriteString("held\n")
				select {}
			})
		}
		panic(err)
	}
	os.Exit(m.Run())
}

// startHolder starts such a process, which ends with the test, and waits until it has the lock.
func startHolder(t *testing.T, env string, server *redistest.Server) *os.Process {
	t.Helper()
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), env+"="+server.Addr())
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the holder said %q, %v", line, err)
	}
	return holder.Process
}

// A holder that dies takes the lock with it for one lease, no longer, and while
// it lives the lease does not end.
func TestHolderKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	stalls := redistest.WatchStalls(t)
	holder := startHolder(t, holderEnv, server)
	l := onRedis(t, server.Client(t))
	awaitRenewed(t, server.Client(t), "k", time.Now(), holderLease)
	_, err := l.TryLock(background, "k")
	wantErr(t, err, core.ErrNotAcquired)

	if err := holder.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	k := take(t, background, l, "k")
	soonAfter(t, stalls, "the lock was free again", killed, time.Now(), holderLease+500*time.Millisecond)
	unlock(t, k)
}

func TestInvariant4DeletedLockIsALoss(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	l := onRedis(t, client)
	k := take(t, background, l, "k", core.Lease(900*time.Millisecond))
	client.Del(background, "lock:k")
	awaitLost(t, k, core.ErrLost)
	wantErr(t, k.Unlock(background), core.ErrLost)
}

// Who steals the lock keeps it: neither renewal nor release of the robbed touch it.
func TestInvariant2WhoStealsTheLockKeepsIt(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	l, thief := onRedis(t, client), onRedis(t, server.Client(t))
	k := take(t, background, l, "k", core.Lease(900*time.Millisecond))
	client.Del(background, "lock:k")
	stolen := take(t, background, thief, "k")
	if stolen.Token() <= k.Token() {
		t.Errorf("token %d after %d", stolen.Token(), k.Token())
	}
	awaitLost(t, k, core.ErrLost)
	wantErr(t, k.Unlock(background), core.ErrLost)
	if n, err := stolen.Count(background); n != 1 || err != nil {
		t.Errorf("the thief's count is %d, %v", n, err)
	}
	unlock(t, stolen)
}

// What redis-cli monitor shows beside a held lock.
func TestAHeldLockIsQuiet(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := onRedis(t, server.Client(t))
	warm := take(t, background, l, "warm-up") // connects, loads the scripts
	if err := warm.Refresh(background); err != nil {
		t.Fatal(err)
	}
	unlock(t, warm)
	const lease = 3 * time.Second
	monitor := server.Monitor(t)
	k := take(t, background, l, "k", core.Lease(lease))
	redistest.Await(t, inTheEnd, "four renewals", func() bool { return len(scripts(monitor.Lines(t))) >= 5 })
	unlock(t, k)
	lines := scripts(monitor.Stop(t))
	held := lines[len(lines)-1].Time - lines[0].Time
	if most := 3 + int(held/(lease/3).Seconds()); len(lines) > most {
		t.Errorf("%d commands in %.3f s; want acquire, one renewal per third of the lease, release", len(lines), held)
	}
}

// scripts are the lines of our scripts: a new connection has some of its own.
func scripts(lines []redistest.MonitorLine) []redistest.MonitorLine {
	var out []redistest.MonitorLine
	for _, line := range lines {
		if name := line.Name(); !line.Lua && (name == "evalsha" || name == "eval") {
			out = append(out, line)
		}
	}
	return out
}

// Ten thousand locks: none lost, no goroutine each.
func TestInvariant7TenThousandLocks(t *testing.T) {
	server := redistest.Start(t)
	l := onRedis(t, server.Client(t))
	before := runtime.NumGoroutine()
	locks := make([]*core.Lock, 10_000)
	forEach := func(do func(i int)) {
		var all sync.WaitGroup
		const atOnce = 40 // a busy machine takes minutes for so many round trips
		for from := range atOnce {
			all.Go(func() {
				for i := from; i < len(locks) && !t.Failed(); i += atOnce {
					do(i)
				}
			})
		}
		all.Wait()
	}
	forEach(func(i int) {
		k, err := l.Lock(background, "k"+strconv.Itoa(i), core.Lease(12*time.Second))
		if err != nil {
			t.Error(err)
		}
		locks[i] = k
	})
	if t.Failed() {
		return
	}
	lost := make(chan string, len(locks))
	for _, k := range locks {
		context.AfterFunc(k.Context(), func() { lost <- k.Key() })
	}
	most := 0
	redistest.Await(t, inTheEnd, "a renewal of each", func() bool {
		most = max(most, runtime.NumGoroutine()-before)
		for _, held := range l.Snapshot().Held {
			if held.Renewals == 0 {
				return len(lost) > 0
			}
		}
		return true
	})
	if len(lost) > 0 {
		t.Errorf("%q and %d more were lost", <-lost, len(lost))
	}
	if most > 150 {
		t.Errorf("%d goroutines for 10,000 locks", most)
	}
	forEach(func(i int) { unlock(t, locks[i]) })
}

// A renewal heals an expiry that somebody has taken away.
func TestRenewalGivesAnExpiry(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	l := onRedis(t, client)
	for form, opt := range map[string]core.Option{"exclusive": core.Lease(3 * time.Second), "shared": core.Shared(), "permits": core.Permits(2)} {
		k := take(t, background, l, form, core.Lease(3*time.Second), opt)
		succeed(t, client.Persist(background, "lock:"+form).Err())
		awaitRenewals(t, l, 1, k)
		if ttl := client.PTTL(background, "lock:"+form).Val(); ttl <= 0 || ttl > 3*time.Second {
			t.Errorf("%s: lasts %v", form, ttl)
		}
		unlock(t, k)
	}
}

// Who asks for a lock that has no room, or leaves one that others still have, looks through the
// holders once a second at most.
func TestManyHoldersAreRarelyLookedThrough(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	l := onRedis(t, client)
	looks := func() int {
		t.Helper()
		info, err := client.InfoMap(background, "commandstats").Result()
		succeed(t, err)
		calls, _, _ := strings.Cut(strings.TrimPrefix(info["Commandstats"]["cmdstat_hgetall"], "calls="), ",")
		n, _ := strconv.Atoi(calls)
		return n
	}
	var locks []*core.Lock
	for range 200 {
		locks = append(locks, take(t, background, l, "k", core.Shared()))
	}
	began := time.Now()
	few := func(what string) {
		t.Helper()
		if got, most := looks(), 2+int(time.Since(began)/time.Second); got > most {
			t.Errorf("%s: looked %d times, want %d at most", what, got, most)
		}
	}
	for range 200 {
		_, err := l.TryLock(background, "k")
		wantBusy(t, err)
	}
	few("refused")
	slices.Reverse(locks)
	unlock(t, locks...)
	few("released")
}
