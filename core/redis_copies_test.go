package core_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Taken out, WAIT after a copy that came by another connection says on newer servers that
// replicas have what none of them has.
func TestWhatReplicasVouchForWritesEachTime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	l := onRedis(t, client)
	fixed := core.FixedLease(time.Hour)
	for name, c := range map[string]struct {
		script string
		run    func(t *testing.T, key string) *core.Lock
	}{
		"lock": {"acquire", func(t *testing.T, key string) *core.Lock {
			return take(t, background, l, key, fixed)
		}},
		"lock of an owner": {"acquire", func(t *testing.T, key string) *core.Lock {
			return take(t, background, l, key, fixed, core.Owner("somebody"))
		}},
		"shared lock": {"acquire", func(t *testing.T, key string) *core.Lock {
			return take(t, background, l, key, fixed, core.Shared())
		}},
		"renewal that has nothing to lengthen": {"renew", func(t *testing.T, key string) *core.Lock {
			outer := take(t, background, l, key)
			inner := take(t, outer.Context(), l, key)
			t.Cleanup(func() { unlock(t, inner) })
			if err := client.PExpire(background, "lock:"+key, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
			if err := outer.Refresh(background); err != nil {
				t.Fatal(err)
			}
			return outer
		}},
		"handover": {"hand_over", func(t *testing.T, key string) *core.Lock {
			if _, err := take(t, background, l, key).Handover(background, time.Hour); err != nil {
				t.Fatal(err)
			}
			return nil
		}},
		"lock that is resumed": {"acquire", func(t *testing.T, key string) *core.Lock {
			ticket, err := take(t, background, l, key).Handover(background, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			k, err := l.Resume(background, key, ticket)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}},
		"attempt": {"acquire", func(t *testing.T, key string) *core.Lock {
			return take(t, background, l, key, attemptAt(request))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			monitor := server.Monitor(t)
			k := c.run(t, name)
			if k != nil {
				t.Cleanup(func() { unlock(t, k) })
			}
			text, digest := script(t, c.script)
			var copied []any
			for _, line := range monitor.Stop(t) {
				if !line.Lua && len(line.Args) > 1 && (line.Args[1] == digest || line.Args[1] == text) {
					copied = copied[:0]
					for _, arg := range line.Args {
						copied = append(copied, arg)
					}
				}
			}
			const left = 30 * time.Minute // another time than that of any lease
			exclusive := name != "shared lock" && name != "lock that is resumed" && name != "attempt"
			if exclusive {
				client.PExpire(background, "lock:"+name, left)
			}
			before := changes(t, client)
			if _, err := client.Do(background, copied...).Result(); err != nil {
				t.Fatal(err)
			}
			if changes(t, client) == before {
				t.Error("another copy writes nothing")
			}
			if ttl := client.PTTL(background, "lock:"+name).Val(); exclusive && (ttl > left || ttl < left-time.Minute) {
				t.Errorf("it ends in %v now, and not in %v", ttl, left)
			}
		})
	}
}

// changes is how many keys and fields Redis has written.
func changes(tb testing.TB, client *redis.Client) int {
	tb.Helper()
	info := client.Info(background, "persistence").Val()
	found := regexp.MustCompile(`rdb_changes_since_last_save:(\d+)`).FindStringSubmatch(info)
	if found == nil {
		tb.Fatalf("INFO persistence: %s", info)
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

// Taken out, a lock that an operator has given no end is gone with the next copy.
func TestACopyKeepsALockWithoutAnEnd(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	l := onRedis(t, client)
	outer := take(t, background, l, "k", core.FixedLease(time.Hour), core.KeepFor(time.Hour))
	inner := take(t, outer.Context(), l, "k")
	if err := client.Persist(background, "lock:k").Err(); err != nil {
		t.Fatal(err)
	}
	unlock(t, inner)
	unlock(t, outer)
	if isFree(t, client, "k") {
		t.Error("it has lost its window")
	}
}
