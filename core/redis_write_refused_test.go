package core_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A Redis may refuse all writes for a while: it cannot save (MISCONF), or lacks its
// replicas (NOREPLICAS). That is told as what it is; what is held lasts as long as its
// lease, and what was to be released is released when Redis writes again.
func TestRedisThatRefusesWrites(t *testing.T) {
	t.Parallel()
	for name, hurt := range map[string]func(t *testing.T) (server *redistest.Server, begin, end func(admin *redis.Client) error){
		"NOREPLICAS": func(t *testing.T) (*redistest.Server, func(*redis.Client) error, func(*redis.Client) error) {
			set := func(n string) func(*redis.Client) error {
				return func(admin *redis.Client) error {
					return admin.ConfigSet(background, "min-replicas-to-write", n).Err()
				}
			}
			return redistest.Start(t), set("1"), set("0")
		},
		"MISCONF": func(t *testing.T) (*redistest.Server, func(*redis.Client) error, func(*redis.Client) error) {
			dir := t.TempDir()
			server := redistest.Start(t, "--save", "3600", "1000000", "--dir", dir)
			begin := func(admin *redis.Client) error {
				if err := os.RemoveAll(dir); err != nil {
					return err
				}
				return admin.BgSave(background).Err()
			}
			return server, begin, func(admin *redis.Client) error {
				return admin.ConfigSet(background, "stop-writes-on-bgsave-error", "no").Err()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, begin, end := hurt(t)
			admin := server.Client(t)
			l := onRedis(t, server.Client(t))
			kept := take(t, background, l, "kept", core.Lease(time.Minute))
			ending := take(t, background, l, "ending", core.Lease(time.Minute))
			short := take(t, background, l, "short", core.Lease(2*time.Second))
			if err := begin(admin); err != nil {
				t.Fatal(err)
			}
			redistest.Await(t, inTheEnd, "writes to be refused", func() bool {
				return redis.HasErrorPrefix(admin.Set(background, "x", 1, 0).Err(), name)
			})
			_, err := l.TryLock(background, "k")
			wantErr(t, err, core.ErrUnavailable)
			if err == nil || !strings.Contains(core.Detail(err), name) { // within a text of Lua's, before Redis 7
				t.Errorf("error %v; want %s", err, name)
			}
			wantErr(t, ending.Unlock(background), core.ErrUnavailable)
			awaitLost(t, short, core.ErrLost)
			if err := kept.Context().Err(); err != nil {
				t.Errorf("a lock was lost before its lease was over: %v", err)
			}
			if err := end(admin); err != nil {
				t.Fatal(err)
			}
			awaitFree(t, admin, "ending")
			unlock(t, kept)
			unlock(t, take(t, background, l, "k"))
		})
	}
}

// A Redis that has run out of memory still renews a lock that a release has granted, and
// one that was taken before.
func TestGrantIsRenewedWithoutMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	a, b := onRedis(t, server.Client(t)), onRedis(t, server.Client(t))
	before := take(t, background, a, "before", core.Lease(6*time.Second))
	k := take(t, background, a, "k")
	waiting := make(chan outcome, 1)
	go func() {
		k, err := b.Lock(background, "k", core.Lease(6*time.Second))
		waiting <- outcome{lock: k, err: err}
	}()
	redistest.Await(t, inTheEnd, "the call to wait", func() bool { return admin.ZCard(background, waitQueue).Val() == 1 })
	awaitSubscriber(t, admin, "k")
	if err := admin.ConfigSet(background, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	unlock(t, k)
	o := <-waiting
	if o.err != nil {
		t.Fatal(o.err)
	}
	unlock(t, take(t, before.Context(), b, "before")) // so is who enters it once more
	awaitRenewals(t, b, 1, o.lock)
	awaitRenewals(t, a, 1, before)
	if err := admin.ConfigSet(background, "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	unlock(t, o.lock, before)
}

// So it does the lock of each of several, and one that was resumed.
func TestHoldersAreRenewedWithoutMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	l := onRedis(t, server.Client(t))
	lease := core.Lease(3 * time.Second)
	locks := []*core.Lock{
		take(t, background, l, "shared", lease, core.Shared()),
		take(t, background, l, "permits", lease, core.Permits(2)),
		take(t, background, l, "permits", lease, core.Permits(2)),
	}
	ticket, err := take(t, background, l, "resumed", lease).Handover(background, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	resumed, err := l.Resume(background, "resumed", ticket, lease)
	if err != nil {
		t.Fatal(err)
	}
	locks = append(locks, resumed)
	if err := admin.ConfigSet(background, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	awaitRenewals(t, l, 1, locks...)
	if err := admin.ConfigSet(background, "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	unlock(t, locks...)
}

// So it parks a lock, and says so again when the answer was lost.
func TestHandoverWithoutMemory(t *testing.T) {
	t.Parallel()
	server, proxy, l := throughProxy(t)
	admin := server.Client(t)
	k := take(t, background, l, "k")
	if err := admin.ConfigSet(background, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	lost := proxy.DropReply(sha(t, "hand_over"))
	ticket, err := k.Handover(background, time.Minute)
	if err != nil {
		t.Error(err)
	}
	if lost.Count() != 1 {
		t.Errorf("%d replies were lost", lost.Count())
	}
	if err := admin.ConfigSet(background, "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	resumed, err := l.Resume(background, "k", ticket)
	if err != nil {
		t.Fatal(err)
	}
	unlock(t, resumed, k)
}
