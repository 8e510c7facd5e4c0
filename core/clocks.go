package core

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// clocks compares the clocks of a master's replicas with its own, once: a replica ends
// a lock by its own clock.
type clocks struct {
	locker *Locker
	client *redis.Client
	once   sync.Once
}

// newClocks returns nil for a client whose replicas it cannot find.
func newClocks(l *Locker, client redis.UniversalClient) *clocks {
	single, ok := client.(*redis.Client)
	if !ok {
		return nil
	}
	return &clocks{locker: l, client: single}
}

// check starts the comparison, the first time. It does not block.
func (c *clocks) check() {
	if c != nil {
		c.once.Do(func() { c.locker.tasks.start(c.compare) })
	}
}

// compare warns of replicas whose clocks are too far off. Where it may not ask, or gets
// no answer, it is silent.
func (c *clocks) compare() {
	l := c.locker
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	info, err := c.client.Info(ctx, "replication").Result()
	if err != nil {
		return
	}
	addrs := replicaAddrs(info)
	if len(addrs) == 0 {
		return
	}
	master, err := clockOf(ctx, c.client)
	if err != nil {
		return
	}
	for _, addr := range addrs {
		replica := c.clientAt(addr)
		at, err := clockOf(ctx, replica)
		_ = replica.Close()
		if err != nil {
			continue
		}
		differ := (at.offset - master.offset).Abs() - (at.doubt + master.doubt)
		if differ > l.defaults.lease/10 {
			l.report.warn("a replica's clock differs from its master's; after a failover a lock may end as much too early",
				"replica", addr, "difference", (at.offset - master.offset).Round(time.Millisecond), "lease", l.defaults.lease)
		}
	}
}

// clientAt returns a client of another server, which it reaches as the master. Options
// are taken one by one, for go-redis writes to others of a client in use.
func (c *clocks) clientAt(addr string) *redis.Client {
	o := c.client.Options()
	dialer := o.Dialer
	if o.Addr == failoverAddr { // of Sentinel, which dials the master whatever the address
		dialer = nil
	}
	return redis.NewClient(&redis.Options{
		Addr:                         addr,
		Dialer:                       dialer,
		TLSConfig:                    o.TLSConfig,
		Username:                     o.Username,
		Password:                     o.Password,
		CredentialsProvider:          o.CredentialsProvider,
		CredentialsProviderContext:   o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
		PoolSize:                     1,
		ContextTimeoutEnabled:        true,
	})
}

// replicaAddrs reads the addresses of the replicas out of INFO replication.
func replicaAddrs(info string) []string {
	var addrs []string
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !strings.HasPrefix(name, "slave") || !strings.Contains(value, "ip=") {
			continue
		}
		fields := map[string]string{}
		for field := range strings.SplitSeq(value, ",") {
			k, v, _ := strings.Cut(field, "=")
			fields[k] = v
		}
		addrs = append(addrs, net.JoinHostPort(fields["ip"], fields["port"]))
	}
	return addrs
}

// clock is by how much a server's clock is ahead of this machine's, as far as the round
// trip lets one know.
type clock struct{ offset, doubt time.Duration }

func clockOf(ctx context.Context, client *redis.Client) (clock, error) {
	if err := client.Ping(ctx).Err(); err != nil { // a new connection's first round trip is long
		return clock{}, err
	}
	asked := time.Now()
	at, err := client.Time(ctx).Result()
	if err != nil {
		return clock{}, err
	}
	doubt := time.Since(asked) / 2
	return clock{at.Sub(asked.Add(doubt)), doubt}, nil
}
