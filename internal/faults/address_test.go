package faults

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// connectionName marks the workers' connections in CLIENT LIST.
const connectionName = "latchkey-faults"

// clients returns what a worker gives to its Locker, with go-redis's own defaults.
func (a address) clients(d *deadlines) []redis.UniversalClient {
	var out []redis.UniversalClient
	switch a.Kind {
	case "cluster":
		out = append(out, redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: a.Addrs, Dialer: a.dial, ClientName: connectionName,
			NewClient: func(o *redis.Options) *redis.Client { return learning(redis.NewClient(o), d, 0) },
		}))
	case "failover":
		out = append(out, learning(redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: a.Master, SentinelAddrs: a.Addrs, Dialer: a.dial, ClientName: connectionName,
		}), d, 0))
	default:
		for i, addr := range a.Addrs {
			client := redis.NewClient(&redis.Options{Addr: addr, Dialer: a.dial, ClientName: connectionName, PoolSize: pooled})
			out = append(out, learning(client, d, i))
		}
	}
	return out
}

func learning(c *redis.Client, d *deadlines, member int) *redis.Client {
	c.AddHook(learner{d, member})
	return c
}

// options are what the Locker needs on this Redis.
func (a address) options() []core.Option {
	if a.Replicas == 0 {
		return nil
	}
	return []core.Option{core.Replicas(a.Replicas, 200*time.Millisecond)}
}

// dial connects through the proxy.
func (a address) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, cmp.Or(a.Detour[addr], addr))
	if err != nil || a.Certificate == nil {
		return conn, err
	}
	config, err := redistest.Trusting(a.Certificate)
	if err != nil {
		return nil, err
	}
	return tls.Client(conn, config), nil
}
