package conn

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// closeWithin bounds how long it takes to close an idle connection, where another has to be opened for that.
const closeWithin = 20 * time.Millisecond

// idle is how many connections of its pool a client has that are not in use. Those of a cluster would look for the nodes first,
// without a deadline.
func idle(client redis.UniversalClient) int {
	if single, ok := client.(*redis.Client); ok {
		return int(single.PoolStats().IdleConns)
	}
	return 0
}

// closeIdle has go-redis close an idle connection of a client's pool, as if it had broken: the one that was used last, with go-redis'
// usual order.
func closeIdle(client redis.UniversalClient) {
	if idle(client) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = recovered(func() error { return client.Process(ctx, &once{Cmd: *redis.NewCmd(ctx, "ping", unwritten{})}) })
}

// unwritten is a word that cannot be written to a connection.
type unwritten struct{}

func (unwritten) MarshalBinary() ([]byte, error) {
	return nil, errors.New("it leads to a server that is read-only")
}
