package core

import (
	"context"
	"net"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// compareClocks warns of replicas whose clocks differ from their master's by more than is allowed: a
// replica ends a key by its own clock. Where it may not ask, or gets no answer, or cannot find the
// replicas, it is silent.
func (e *engine) compareClocks(client *redis.Client, allowed time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), e.timeout)
	defer cancel()
	info, _ := client.Info(ctx, "replication").Result()
	replicas := replicaLine.FindAllStringSubmatch(info, -1)
	master, err := clockOf(ctx, client)
	if err != nil {
		return
	}
	for _, r := range replicas {
		addr := net.JoinHostPort(r[1], r[2])
		replica := clientAt(addr, client.Options())
		at, err := clockOf(ctx, replica)
		_ = replica.Close()
		ahead := at.offset - master.offset
		if err == nil && ahead.Abs()-(at.doubt+master.doubt) > allowed {
			e.report.warn(ctx, "a replica's clock differs from its master's; after a failover a lock may end as much too early",
				"replica", addr, "difference", ahead.Round(time.Millisecond), "allowed", allowed)
		}
	}
}

// clientAt returns a client of another server, which it reaches as the master. Options
// are taken one by one, for go-redis writes to others of a client in use.
func clientAt(addr string, o *redis.Options) *redis.Client {
	own := &redis.Options{
		Addr: addr, TLSConfig: o.TLSConfig, PoolSize: 1, ContextTimeoutEnabled: true,
		Username: o.Username, Password: o.Password, CredentialsProvider: o.CredentialsProvider,
		CredentialsProviderContext:   o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
	}
	if o.Addr != conn.FailoverAddr { // Sentinel's dials the master whatever the address
		own.Dialer = o.Dialer
	}
	return redis.NewClient(own)
}

// replicaLine is a replica in INFO replication.
var replicaLine = regexp.MustCompile(`(?m)^slave\d+:ip=([^,]+),port=(\d+)`)

// clock is by how much a server's clock is ahead of this machine's, as far as the round
// trip lets one know.
type clock struct{ offset, doubt time.Duration }

func clockOf(ctx context.Context, client *redis.Client) (clock, error) {
	asked := time.Now()
	at, err := client.Time(ctx).Result()
	doubt := time.Since(asked) / 2
	return clock{at.Sub(asked.Add(doubt)), doubt}, err
}
