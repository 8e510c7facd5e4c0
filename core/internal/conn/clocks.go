package conn

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// compareClocks compares the clocks of a master's replicas with its own, the first time: a
// replica ends a key by its own clock. It warns of those that are too far off. Where it may
// not ask, or gets no answer, or cannot find the replicas, it is silent. It does not block.
func (s *Server) compareClocks() {
	client, ok := s.client.(*redis.Client)
	if !ok || s.config.MaxSkew == 0 {
		return
	}
	s.compare.Do(func() { s.config.Workers.Start(func() { s.warnOfSkew(client) }) })
}

func (s *Server) warnOfSkew(client *redis.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
	defer cancel()
	info, err := client.Info(ctx, "replication").Result()
	if err != nil {
		return
	}
	addrs := replicaAddrs(info)
	if len(addrs) == 0 {
		return
	}
	master, err := clockOf(ctx, client)
	if err != nil {
		return
	}
	for _, addr := range addrs {
		replica := clientAt(addr, client.Options())
		at, err := clockOf(ctx, replica)
		_ = replica.Close()
		ahead := at.offset - master.offset
		if err == nil && ahead.Abs()-(at.doubt+master.doubt) > s.config.MaxSkew {
			s.config.Warn("a replica's clock differs from its master's; after a failover a lock may end as much too early",
				"replica", addr, "difference", ahead.Round(time.Millisecond), "allowed", s.config.MaxSkew)
		}
	}
}

// clientAt returns a client of another server, which it reaches as the master. Options
// are taken one by one, for go-redis writes to others of a client in use.
func clientAt(addr string, o *redis.Options) *redis.Client {
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
