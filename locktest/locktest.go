package locktest

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/buffered"
)

// servers counts the servers of this process.
var servers atomic.Int64

// closeTimeout bounds the wait for locks that a test left held.
const closeTimeout = time.Second

// New returns a Locker on a Redis of its own, embedded in the test process. It
// uses no socket, and its keys expire by the clock of the test, so it also works
// inside a testing/synctest bubble, where an hour passes at once. At the end of
// the test the Locker is closed: locks that are still held are taken away after a
// second, and the test fails, for a lock that is never unlocked is a bug.
//
// Bad options end the test. The Locker is not made the default one; a test that
// needs that calls [core.SetDefault].
func New(tb testing.TB, opts ...core.Option) *core.Locker {
	tb.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	client := redis.NewClient(&redis.Options{
		// Not dialled. An IP address, for go-redis looks names up; another one for
		// each server, for Lockers with one address share their Redis.
		Addr: fmt.Sprintf("127.0.0.1:%d", servers.Add(1)),
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			conn, err := server.Dial()
			if err != nil {
				return nil, err
			}
			return buffered.New(conn), nil
		},
	})
	locker, err := core.New(client, opts...)
	if err != nil {
		tb.Fatalf("locktest: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := locker.Close(ctx); err != nil {
			tb.Errorf("locktest: locks are still held at the end of the test: %v", err)
		}
		if err := client.Close(); err != nil {
			tb.Errorf("locktest: %v", err)
		}
		server.Close()
	})
	return locker
}
