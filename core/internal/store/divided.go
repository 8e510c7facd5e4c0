package store

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// slotsPerLook is so small that hardly a node of a cluster has no slot that is looked at.
const slotsPerLook = 256

// FindDivided returns an error when a client that does not know of clusters has reached one
// node of several: it cannot take most locks. It returns nil when it did not find out until
// ctx ended. It looks for keys under prefix, and writes none.
func (s *Store) FindDivided(ctx context.Context, prefix string) error {
	found := make(chan error, len(s.servers))
	for _, server := range s.servers {
		s.config.Workers.Start(func() { found <- findDivided(ctx, server, prefix) })
	}
	for range s.servers {
		select {
		case err := <-found:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

func findDivided(ctx context.Context, server *conn.Server, prefix string) error {
	client, ok := server.Client().(*redis.Client)
	if !ok {
		return nil
	}
	pipe := client.Pipeline()
	for slot := 0; slot < slots; slot += slotsPerLook {
		tag := tags()[slot]
		pipe.Eval(ctx, "return 0", []string{prefix + "latchkey:probe:{" + string(tag[:]) + "}"})
	}
	looks, _ := pipe.Exec(ctx) // each has its own error
	for _, look := range looks {
		if conn.IsMoved(look.Err()) {
			return fmt.Errorf("%s is one node of a cluster, others have the rest of the keys: use redis.NewClusterClient, or core.Open with ?addr=host:port of another node: %w",
				client.Options().Addr, look.Err())
		}
	}
	return nil
}
