package conn

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"
)

// Replicas is how many replicas must have a write before it counts, and for how long they are waited for, in
// whole milliseconds. The zero value waits for none.
type Replicas struct {
	N      int
	Within time.Duration
}

// Check reports why client, with that timeout of a request, cannot do it.
func (r Replicas) Check(client redis.UniversalClient, timeout time.Duration) error {
	if r.N == 0 {
		return nil
	}
	var read time.Duration // 0: no limit
	switch c := client.(type) {
	case *redis.Client:
		read = c.Options().ReadTimeout
	case *redis.ClusterClient:
		read = c.Options().ReadTimeout
	default:
		return fmt.Errorf("core: Replicas needs a *redis.Client or *redis.ClusterClient, got %T", client)
	}
	switch {
	case r.Within >= timeout:
		return fmt.Errorf("core: Replicas(%d, %v): the time must be less than Timeout, which is %v", r.N, r.Within, timeout)
	case read > 0 && r.Within >= read:
		return fmt.Errorf("core: Replicas(%d, %v): the time must be less than the client's ReadTimeout, which is %v", r.N, r.Within, read)
	}
	return nil
}

// WaitsForReplicas reports whether replicas must have what scripts write.
func (s *Server) WaitsForReplicas() bool { return s.config.Replicas.N > 0 }

// verifyReplicas refuses the writes of a batch when too few replicas have them.
func (s *Server) verifyReplicas(b *batch, wait *redis.Cmd) {
	want := s.config.Replicas.N
	have, err := wait.Int()
	if err == nil && have >= want {
		return
	}
	short := shortfall{fmt.Errorf("%d of %d replicas have the lock", have, want)}
	if err != nil {
		short = shortfall{fmt.Errorf("whether %d replicas have the lock is unknown: %w", want, err)}
	}
	for _, c := range b.calls {
		if c.answer.err == nil && c.Command.Script.did(c.answer.value) { // else nothing was written
			c.answer.err = short
		}
	}
}

// shortfall says that Redis did what it was asked, but not safely.
type shortfall struct{ error }

func (e shortfall) Unwrap() error { return e.error }

// compareClocks tells by how much the clocks of replicas differ from their master's: a replica ends a key by its own
// clock. Where it may not ask, or gets no answer, or cannot find the replicas, it is silent.
func (s *Server) compareClocks(client *redis.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
	defer cancel()
	info, _ := client.Info(ctx, "replication").Result()
	replicas := replicaLine.FindAllStringSubmatch(info, -1)
	master, masterDoubt, err := clockOf(ctx, client)
	if err != nil {
		return
	}
	for _, r := range replicas {
		addr := net.JoinHostPort(r[1], r[2])
		replica := clientAt(addr, client.Options())
		ahead, doubt, err := clockOf(ctx, replica)
		_ = replica.Close()
		if err == nil {
			s.config.ReplicaClock(addr, ahead-master, doubt+masterDoubt)
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
	if o.Addr != failoverAddr { // Sentinel's dials the master whatever the address
		own.Dialer = o.Dialer
	}
	return redis.NewClient(own)
}

// replicaLine is a replica in INFO replication.
var replicaLine = regexp.MustCompile(`(?m)^slave\d+:ip=([^,]+),port=(\d+)`)

// clockOf tells by how much a server's clock is ahead of this machine's, give or take the doubt, as far as the round
// trip lets one know.
func clockOf(ctx context.Context, client *redis.Client) (ahead, doubt time.Duration, err error) {
	asked := time.Now()
	at, err := client.Time(ctx).Result()
	doubt = time.Since(asked) / 2
	return at.Sub(asked.Add(doubt)), doubt, err
}
