//go:build go1.25

package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// bank is accounts in another Redis than that of the locks. Transfers read and write them
// without any protection of their own.
type bank struct {
	client   redis.UniversalClient
	accounts int
}

func (b bank) of(account int) string { return "account:" + strconv.Itoa(account) }

// transfer moves money, and looks for others who are at work on the same accounts.
func (b bank) transfer(t *testing.T, ctx context.Context, from, to, amount int) {
	for _, account := range []int{from, to} {
		if n := b.client.Incr(ctx, b.of(account)+":inside").Val(); n != 1 {
			t.Errorf("%d are at work on %s", n, b.of(account))
		}
	}
	x, err := b.client.Get(ctx, b.of(from)).Int()
	y, err2 := b.client.Get(ctx, b.of(to)).Int()
	if err != nil || err2 != nil {
		t.Error(err, err2)
	}
	b.client.Set(ctx, b.of(from), x-amount, 0)
	b.client.Set(ctx, b.of(to), y+amount, 0)
	for _, account := range []int{from, to} {
		b.client.Decr(ctx, b.of(account)+":inside")
	}
}

// Transfers cross one another, from several processes: no money is lost, nobody is refused, and
// nothing stays locked, whatever the Redis of the locks is.
func TestLockAllStormOfTransfers(t *testing.T) {
	t.Parallel()
	redises := map[string]func(t *testing.T) func(...core.Option) *core.Locker{
		"single server": func(t *testing.T) func(...core.Option) *core.Locker {
			server := redistest.Start(t)
			return func(opts ...core.Option) *core.Locker { return onRedis(t, server.Client(t, patient), opts...) }
		},
		"cluster": func(t *testing.T) func(...core.Option) *core.Locker {
			cluster := redistest.StartCluster(t, 3, 0)
			return func(opts ...core.Option) *core.Locker {
				return onRedis(t, cluster.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = inTheEnd }), opts...)
			}
		},
		"quorum": func(t *testing.T) func(...core.Option) *core.Locker {
			m := startMembers(t, 3)
			return func(opts ...core.Option) *core.Locker { return m.locker(t, opts...) }
		},
	}
	for name, start := range redises {
		t.Run(name, func(t *testing.T) {
			locker := start(t)
			b := bank{redistest.Start(t).Client(t, patient), 4}
			for i := range b.accounts {
				b.client.Set(background, b.of(i), 1000, 0)
			}
			var all sync.WaitGroup
			for process := range 3 {
				l := locker(core.Timeout(inTheEnd))
				for call := range 4 {
					random := rand.New(rand.NewPCG(uint64(process), uint64(call)))
					all.Go(func() {
						for range 25 {
							from := random.IntN(b.accounts)
							to := (from + 1 + random.IntN(b.accounts-1)) % b.accounts
							keys := []string{b.of(from), b.of(to)}
							err := l.DoAll(background, keys, func(ctx context.Context) error {
								b.transfer(t, ctx, from, to, random.IntN(100))
								return nil
							})
							if err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			all.Wait()
			sum := 0
			for i := range b.accounts {
				n, err := b.client.Get(background, b.of(i)).Int()
				if err != nil {
					t.Error(err)
				}
				sum += n
			}
			if sum != 1000*b.accounts {
				t.Errorf("the accounts have %d in all; want %d", sum, 1000*b.accounts)
			}
			l := locker()
			for i := range b.accounts {
				redistest.Await(t, inTheEnd, "all to be free", func() bool {
					info, err := l.Inspect(background, b.of(i))
					return err == nil && !info.Locked
				})
			}
		})
	}
}

// In a cluster all keys of a node share a round trip; those of another do not wait for it.
func TestLockAllInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	l := onRedis(t, cluster.Client(t))
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprint(i))
	}
	m := takeAll(t, background, l, keys)
	for _, key := range keys {
		if isFree(t, cluster.Client(t), key) {
			t.Errorf("%s is free", key)
		}
	}
	unlockAll(t, m)
	for _, key := range keys {
		awaitFree(t, cluster.Client(t), key)
	}
}
