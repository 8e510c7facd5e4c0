package core_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// realRedis is a Redis to which something happens that must cost nobody a lock.
type realRedis struct {
	client  redis.UniversalClient
	locker  func(opts ...core.Option) *core.Locker
	trouble func(keys ...string)
}

var realRedises = map[string]func(t *testing.T) realRedis{
	"single server": func(t *testing.T) realRedis {
		server := redistest.Start(t)
		client := server.Client(t)
		return realRedis{
			client: client,
			locker: func(opts ...core.Option) *core.Locker { return onRedis(t, server.Client(t), opts...) },
			trouble: func(...string) { // connections break, and scripts are unknown
				client.ScriptFlush(background)
				client.ClientKillByFilter(background, "TYPE", "normal", "SKIPME", "yes")
				client.ClientKillByFilter(background, "TYPE", "pubsub")
			},
		}
	},
	"Sentinel": func(t *testing.T) realRedis {
		s := redistest.StartSentinel(t, 1)
		return realRedis{
			client: s.Client(t),
			locker: func(opts ...core.Option) *core.Locker { return onSentinel(t, s, opts...) },
			trouble: func(keys ...string) { // the replica becomes the master
				master := s.Master(t).Client(t)
				for _, replica := range s.Replicas(t) {
					client := replica.Client(t)
					for _, key := range keys {
						redistest.Await(t, inTheEnd, "all of "+key+" on a replica", func() bool {
							return maps.Equal(client.HGetAll(background, "lock:"+key).Val(), master.HGetAll(background, "lock:"+key).Val())
						})
					}
				}
				s.Failover(t)
				s.AwaitStable(t)
			},
		}
	},
	"cluster": func(t *testing.T) realRedis {
		cluster := redistest.StartCluster(t, 2, 1)
		return realRedis{
			client: cluster.Client(t),
			locker: func(opts ...core.Option) *core.Locker { return onRedis(t, cluster.Client(t), opts...) },
			trouble: func(keys ...string) { // a replica becomes the master, and a slot moves
				cluster.Failover(t, "lock:"+keys[0])
				cluster.AwaitStable(t)
				for _, node := range cluster.Nodes() {
					role := node.Client(t).Info(background, "replication").Val()
					if node != cluster.MasterFor(t, "lock:"+keys[1]) && strings.Contains(role, "role:master") {
						cluster.MoveSlot(t, "lock:"+keys[1], node, nil)
						return
					}
				}
			},
		}
	},
}

// onRealRedises runs a test on each of them, beside one another.
func onRealRedises(t *testing.T, test func(t *testing.T, r realRedis)) {
	t.Parallel()
	for name, start := range realRedises {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// Holders that go together keep their lock, each its own, whatever happens to the Redis; those
// that do not go with them wait, and learn of its end. A lock that was deleted is lost to each.
func TestFormsOnARealRedis(t *testing.T) {
	const lease = 6 * time.Second
	onRealRedises(t, func(t *testing.T, r realRedis) {
		one, two, outside := r.locker(core.Lease(lease)), r.locker(core.Lease(lease)), r.locker()
		forms := map[string]core.Option{"shared": core.Shared(), "permits": core.Permits(2)}
		first, second, waiting := map[string]*core.Lock{}, map[string]*core.Lock{}, map[string]<-chan turn{}
		together := func(key string) {
			first[key], second[key] = take(t, background, one, key, forms[key]), take(t, background, two, key, forms[key])
			if first[key].Token() >= second[key].Token() {
				t.Errorf("%s: token %d after %d", key, second[key].Token(), first[key].Token())
			}
		}
		for key := range forms {
			together(key)
			waiting[key] = queueUp(t, outside, key)
		}

		r.trouble("shared", "permits")
		for key, form := range forms {
			awaitRenewals(t, one, 2, first[key])
			awaitRenewals(t, two, 2, second[key])
			inner := take(t, first[key].Context(), one, key, form)
			_, err := one.TryLock(first[key].Context(), key)
			wantErr(t, err, core.ErrUpgrade)
			for _, other := range []core.Option{core.NoWait(), core.Permits(2)} {
				_, err = outside.TryLock(background, key, other)
				wantBusy(t, err)
			}
			unlock(t, first[key], inner)
			_, err = outside.TryLock(background, key)
			wantBusy(t, err)
			unlock(t, second[key])
			alone := (<-waiting[key]).lock
			if alone == nil {
				t.FailNow()
			}
			if alone.Token() <= second[key].Token() {
				t.Errorf("%s: token %d after %d", key, alone.Token(), second[key].Token())
			}
			_, err = one.TryLock(background, key, form)
			wantBusy(t, err)
			unlock(t, alone)
		}

		for key, form := range forms {
			together(key)
			r.client.Del(background, "lock:"+key)
			for l, k := range map[*core.Locker]*core.Lock{one: first[key], two: second[key]} {
				awaitLost(t, k, core.ErrLost)
				_, err := l.Lock(context.WithoutCancel(k.Context()), key, form)
				wantErr(t, err, core.ErrLost)
				wantErr(t, k.Unlock(background), core.ErrLost)
			}
			unlock(t, take(t, background, outside, key))
		}
	})
}

// A lock that was downgraded goes on as a shared one, whatever happens to the Redis.
func TestDowngradeOnARealRedis(t *testing.T) {
	const lease = 6 * time.Second
	onRealRedises(t, func(t *testing.T, r realRedis) {
		one, two, outside := r.locker(core.Lease(lease)), r.locker(core.Lease(lease)), r.locker()
		keys := []string{"before", "after"}
		held, waiting := map[string]*core.Lock{}, map[string]<-chan turn{}
		for _, key := range keys {
			held[key] = take(t, background, one, key)
			waiting[key] = queueUp(t, two, key, core.Shared())
		}
		downgrade(t, held["before"])
		r.trouble(keys...)
		downgrade(t, held["after"])
		for _, key := range keys {
			sharer := (<-waiting[key]).lock
			if sharer == nil {
				t.FailNow()
			}
			if sharer.Token() <= held[key].Token() {
				t.Errorf("%s: token %d after %d", key, sharer.Token(), held[key].Token())
			}
			awaitRenewals(t, one, 2, held[key])
			_, err := outside.TryLock(background, key)
			wantBusy(t, err)
			unlock(t, held[key], sharer)
			unlock(t, take(t, background, outside, key))
		}
	})
}

// A lock that was handed over, and one that was resumed, stay what they are, whatever happens to
// the Redis. So do locks of several keys.
func TestHandoverOnARealRedis(t *testing.T) {
	const lease = 6 * time.Second
	onRealRedises(t, func(t *testing.T, r realRedis) {
		one, two, outside := r.locker(core.Lease(lease)), r.locker(core.Lease(lease)), r.locker()
		resume := func(key, ticket string) *core.Lock {
			k, err := two.Resume(background, key, ticket)
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			return k
		}
		keys := []string{"parked", "resumed", "several", "keys"}
		tickets, tokens, waiting := map[string]string{}, map[string]int64{}, map[string]<-chan turn{}
		for _, key := range keys[:2] {
			k := take(t, background, one, key)
			waiting[key] = queueUp(t, outside, key)
			tokens[key], tickets[key] = k.Token(), parkedBy(t, k, time.Minute)
		}
		resumed := map[string]*core.Lock{"resumed": resume("resumed", tickets["resumed"])}
		several := takeAll(t, background, one, keys[2:])

		r.trouble(keys...)
		resumed["parked"] = resume("parked", tickets["parked"])
		for key, k := range resumed {
			awaitRenewals(t, two, 2, k)
			if k.Token() <= tokens[key] {
				t.Errorf("%s: token %d after %d", key, k.Token(), tokens[key])
			}
			_, err := one.Resume(background, key, tickets[key])
			wantBusy(t, err)
			if err := k.Abort(background); err != nil { // which parks it again
				t.Error(err)
			}
			_, err = outside.TryLock(background, key)
			wantBusy(t, err)
			unlock(t, resume(key, tickets[key]))
			alone := (<-waiting[key]).lock
			if alone == nil {
				t.FailNow()
			}
			unlock(t, alone)
			_, err = one.Resume(background, key, tickets[key])
			wantErr(t, err, core.ErrTicket)
		}
		for _, key := range keys[2:] {
			_, err := outside.TryLock(background, key)
			wantBusy(t, err)
		}
		if err := several.Context().Err(); err != nil {
			t.Errorf("locks of several keys: %v", context.Cause(several.Context()))
		}
		unlockAll(t, several)
	})
}
