//go:build go1.25

package core_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// unseen is a client that cannot see that connections of its pool are dead, as over TLS.
func unseen(t *testing.T, server *redistest.Server, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *redis.Client {
	t.Helper()
	return server.Client(t, patient, func(o *redis.Options) { o.Dialer, o.PoolSize = new(wrapping).dialer(dial), 400 })
}

// killAll has Redis close the connections of all clients.
func killAll(t *testing.T, admin *redis.Client) {
	t.Helper()
	if err := admin.ClientKillByFilter(background, "type", "normal", "skipme", "yes").Err(); err != nil {
		t.Fatal(err)
	}
}

// Taken out, each renewal uses up one of the dead connections, and the lock is lost on a healthy Redis.
func TestKilledConnectionsLoseNoLock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := unseen(t, server, new(net.Dialer).DialContext)
	l := onRedis(t, client)
	locks := []*core.Lock{take(t, background, l, "short", core.Lease(6*time.Second)), take(t, background, l, "long", core.Lease(20*time.Second))}
	idle(t, client, 100)
	killAll(t, server.Client(t))
	awaitRenewals(t, l, 1, locks...)
	unlock(t, locks...)
}

// Taken out, calls fail for as long as there are that many.
func TestHundredsOfKilledConnectionsFailNoCall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	client := unseen(t, server, new(net.Dialer).DialContext)
	l := onRedis(t, client, core.Timeout(9*time.Second))
	idle(t, client, 300)
	killAll(t, admin)
	k := take(t, background, l, "k")
	idle(t, client, 300)
	killAll(t, admin)
	unlock(t, k)
}

// After a failover behind one address each connection of the pool leads to a replica, and says so once: in Redis' words, after which
// go-redis closes it, or in those of a proxy.
func TestFailoverBehindOneAddressFailsNoCall(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{"Redis": "", "a proxy": "-ERR READONLY You can't write against a read only replica.\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, master := redistest.Start(t), redistest.Start(t)
			before := old.Proxy(t)
			var failedOver atomic.Bool
			client := unseen(t, old, func(ctx context.Context, network, _ string) (net.Conn, error) {
				addr := before.Addr()
				if failedOver.Load() {
					addr = master.Addr()
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			})
			l := onRedis(t, client, core.Timeout(9*time.Second))
			unlock(t, take(t, background, l, "warm-up"))
			idle(t, client, 100)
			host, port, _ := net.SplitHostPort(master.Addr())
			if err := old.Client(t).ReplicaOf(background, host, port).Err(); err != nil {
				t.Fatal(err)
			}
			if says != "" {
				before.Answer(redistest.Command("evalsha", "eval"), says, redistest.Always())
			}
			failedOver.Store(true)
			var all sync.WaitGroup
			for _, key := range numbered(0, 100) {
				all.Go(func() {
					k, err := l.Lock(background, key)
					if err == nil {
						err = k.Unlock(background)
					}
					if err != nil {
						t.Errorf("%s: %v", key, core.Detail(err))
					}
				})
			}
			all.Wait()
		})
	}
}
