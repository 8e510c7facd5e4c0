package store

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// FindDivided returns an error when a client that does not know of clusters has reached one node of several: it cannot
// take most locks. It returns nil when it did not find out until ctx ended. It looks for keys under prefix, and writes
// none.
func (s *Store) FindDivided(ctx context.Context, prefix string) (err error) {
	const step = 256 // hardly a node of a cluster has no slot that is looked at
	var looks []*conn.Command
	for slot := 0; slot < slots; slot += step {
		tag := tags()[slot]
		looks = append(looks, &conn.Command{Script: s.scripts.inspect, Keys: 1, Words: []any{prefix + "latchkey:probe:{" + string(tag[:]) + "}"}})
	}
	for _, server := range s.servers {
		client, ok := server.Client().(*redis.Client)
		if !ok {
			continue
		}
		server.DoAll(ctx, looks, s.config.Timeout, func(_ int, _ conn.Reply, failure error) {
			if conn.IsMoved(failure) {
				err = fmt.Errorf("%s is one node of a cluster, others have the rest of the keys: use redis.NewClusterClient, or core.Open with ?addr=host:port of another node: %w",
					client.Options().Addr, failure)
			}
		})
	}
	return err
}
