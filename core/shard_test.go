//go:build go1.25

package core_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// Renewals that are due together are sent to each shard apart.
// Taken out, a shard that hangs holds up the renewals of the others, and their
// healthy locks are lost. Tried: this test then fails with "lost beside a hanging
// shard".
func TestRenewalsOfAShardDoNotWaitForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := map[string]*embedded{}
		addrs := map[string]string{}
		for _, name := range []string{"one", "two"} {
			s := newEmbedded(t)
			servers[s.addr], addrs[name] = s, s.addr
		}
		ring := redis.NewRing(&redis.RingOptions{
			Addrs:       addrs,
			HeartbeatFn: func(context.Context, *redis.Client) bool { return true },
			NewClient: func(o *redis.Options) *redis.Client {
				s := servers[o.Addr]
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) { return s.dial(ctx, network, addr) }
				return redis.NewClient(o)
			},
		})
		t.Cleanup(func() { _ = ring.Close() })
		l, err := core.New(ring, quiet, core.Lease(3*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		closeAtEnd(t, l)
		sick := servers[addrs["one"]]
		for range 10 { // in which order they were sent is chance
			var locks []*core.Lock
			for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
				locks = append(locks, take(t, background, l, key)) // at one moment
			}
			sick.failAll(func(*embedded, *peer, string, []string) bool {
				time.Sleep(10 * time.Second)
				return false
			}, renew)
			time.Sleep(2900 * time.Millisecond)
			sick.heal()
			time.Sleep(20 * time.Second)
			for _, k := range locks {
				if !sick.Exists(clockOf("lock:"+k.Key())) && k.Context().Err() != nil {
					t.Errorf("%q was lost beside a hanging shard: %v", k.Key(), context.Cause(k.Context()))
				}
				_ = k.Unlock(background)
			}
		}
	})
}
