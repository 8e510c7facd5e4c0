package core_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// wrapping makes connections of which go-redis cannot see that they are dead, as those of TLS. What is sent by those
// that were there when silence was called goes nowhere.
type wrapping struct {
	mu    sync.Mutex
	conns []*wrapped
}

type wrapped struct {
	net.Conn
	silent atomic.Bool
}

func (w *wrapping) dialer(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := &wrapped{Conn: conn}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conns = append(w.conns, c)
		return c, nil
	}
}

func (w *wrapping) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.silent.Store(true)
	}
}

func (c *wrapped) Write(b []byte) (int, error) {
	if c.silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// A lock whose renewals meet the dead connections of a pool one after the other is lost on a healthy Redis.
func TestDeadConnectionsLoseNoLock(t *testing.T) {
	for _, c := range []struct {
		dead  int
		lease time.Duration
	}{{40, 3 * time.Second}, {40, 10 * time.Second}, {300, 30 * time.Second}} {
		bubble(t, func(t *testing.T, s *embedded) {
			client, l := pooling(t, s, new(wrapping))
			k := take(t, background, l, "k", core.Lease(c.lease))
			idle(t, client, c.dead)
			s.breakConnections()
			time.Sleep(3 * c.lease)
			if err := context.Cause(k.Context()); err != nil {
				t.Errorf("%d dead connections, a lease of %v: %v", c.dead, c.lease, err)
			}
			unlock(t, k)
		})
	}
}

// So is one whose renewals wait for connections of which a network has forgotten.
func TestSilentConnectionsLoseNoLock(t *testing.T) {
	for _, lease := range []time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second} {
		bubble(t, func(t *testing.T, s *embedded) {
			w := new(wrapping)
			client, l := pooling(t, s, w)
			var locks []*core.Lock
			for _, key := range numbered(0, 100) {
				locks = append(locks, take(t, background, l, key, core.Lease(lease)))
			}
			idle(t, client, 100)
			w.silence()
			time.Sleep(3 * lease)
			for _, k := range locks {
				if err := context.Cause(k.Context()); err != nil {
					t.Errorf("a lease of %v: %v", lease, err)
				}
			}
			unlock(t, locks...)
		})
	}
}

// pooling is a client with as many connections as it wants.
func pooling(t *testing.T, s *embedded, w *wrapping) (*redis.Client, *core.Locker) {
	t.Helper()
	// A pool of their own for pipelines is what newer go-redis gives everybody.
	client := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: w.dialer(s.dial), PoolSize: 400, PipelineReadBufferSize: 4096})
	t.Cleanup(func() { _ = client.Close() })
	return client, onRedis(t, client)
}

// A server that is hung up on by all is asked once at a time, and what else uses its connections seldom has to open others.
func TestSilentRedisIsNotAskedOften(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		w := new(wrapping)
		client, l := pooling(t, s, w)
		k := take(t, background, l, "k", core.Lease(3*time.Minute))
		s.failAll(hang, renew)
		for k.Context().Err() == nil {
			idle(t, client, 20)
			time.Sleep(time.Second)
		}
		if n := len(s.commands(renew)); n > 30 { // in two minutes
			t.Errorf("%d renewals", n)
		}
		if n := len(w.conns); n > 150 { // others after 5 s, 10 s, 20 s and so on
			t.Errorf("%d connections", n)
		}
		s.heal()
		_ = k.Unlock(background)
	})
}
