package redisson

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// On a cluster of Redis 7 Redisson's AUTO and ON go with core.ShardedPubSub, OFF
// without.
func TestCluster(t *testing.T) {
	needJava(t)
	cluster := redistest.StartCluster(t, 3, 0)
	client := cluster.Client(t)
	var servers []*redis.Client
	for _, n := range cluster.Nodes() {
		servers = append(servers, n.Client(t))
	}
	with := func(t *testing.T, mode string, opts ...core.Option) pair {
		t.Helper()
		args := []string{"mode=" + mode}
		for _, addr := range cluster.Addrs() {
			args = append(args, "address=redis://"+addr)
		}
		return pair{startJava(t, args...).thread(1), onRedis(t, cluster.Client(t), opts...), client, servers}
	}
	for _, c := range []struct {
		name, mode string
		opts       []core.Option
	}{
		{"AUTO and ShardedPubSub", "AUTO", []core.Option{core.ShardedPubSub()}},
		{"ON and ShardedPubSub", "ON", []core.Option{core.ShardedPubSub()}},
		{"OFF and plain", "OFF", nil},
	} {
		t.Run(c.name, func(t *testing.T) { with(t, c.mode, c.opts...).wakes(t, 50) })
	}

	// Without agreement nobody is woken, but nobody is let in before time either.
	t.Run("mixed", func(t *testing.T) {
		p := with(t, "AUTO")
		var toGo, toJava []time.Duration
		for i := range 7 {
			toGo = append(toGo, p.toGo(t, fmt.Sprint("mixed ", i), p.unlockInJava(t)))
		}
		for i := range 3 {
			toJava = append(toJava, p.toJava(t, fmt.Sprint("slept ", i), asleep(unlockInGo(t)), core.FixedLease(lease)))
		}
		t.Logf("Java frees, Go has it: %s", spread(toGo))
		t.Logf("Go frees, Java has it, with a lease of %v: %s", lease, spread(toJava))
		if median(toJava) < lease/2 {
			t.Error("Java was woken")
		}
	})
}
