//go:build go1.25

package core_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// impaired changes what a process sends.
type impaired struct {
	net.Conn
	write func(c net.Conn, p []byte) (int, error)
}

func (c impaired) Write(p []byte) (int, error) { return c.write(c.Conn, p) }

var (
	subscribe = []byte("subscribe")
	publish   = []byte("PUBLISH")
)

// impairments keep a process from hearing others, or others from hearing it.
var impairments = map[string]func(c net.Conn, p []byte) (int, error){
	"it may not subscribe": func(c net.Conn, p []byte) (int, error) {
		if bytes.Contains(p, subscribe) {
			return 0, errors.Join(errors.New("no connection is left"), c.Close())
		}
		return c.Write(p)
	},
	"its subscription is cut again and again": func(c net.Conn, p []byte) (int, error) {
		if bytes.Contains(p, subscribe) {
			time.AfterFunc(70*time.Millisecond, func() { _ = c.Close() })
		}
		return c.Write(p)
	},
	"it may not publish": func(c net.Conn, p []byte) (int, error) {
		if bytes.Contains(p, publish) {
			p = bytes.ReplaceAll(p, publish, []byte("PUBLISX"))
		}
		return c.Write(p)
	},
}

// A process that messages do not reach, or that cannot send any, has its share beside
// those that are granted the lock with a message.
// Taken out, it never has it.
func TestEveryProcessOfAMixedFleetGetsTheLock(t *testing.T) {
	for name, impair := range impairments {
		for n := 1; n <= 5; n += 4 {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					ctx, cancel := context.WithCancel(background)
					var working sync.WaitGroup
					gaps := make([]*gap, 0, 2+n)
					begin := func(l *core.Locker, calls int) {
						g := &gap{last: time.Now()}
						gaps = append(gaps, g)
						for range calls {
							working.Go(func() { g.work(ctx, t, l) })
						}
					}
					for range 2 {
						begin(s.locker(), 4)
					}
					for range n {
						begin(onRedis(t, s.impairedClient(impair)), 1)
					}
					time.Sleep(8 * time.Second)
					end := time.Now()
					cancel()
					working.Wait()
					for i, g := range gaps {
						g.longest = max(g.longest, end.Sub(g.last))
						t.Logf("process %d of %d: %d turns, longest wait %v", i+1, n+2, g.turns, g.longest)
						if g.longest > 1500*time.Millisecond {
							t.Errorf("process %d, of which the first two are well, had to wait %v", i+1, g.longest)
						}
					}
				})
			})
		}
	}
}

func (s *embedded) impairedClient(impair func(net.Conn, []byte) (int, error)) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr: s.addr,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := s.dial(ctx, network, addr)
			return impaired{c, impair}, err
		},
	})
	s.tb.Cleanup(func() { _ = client.Close() })
	return client
}

// gap is how long a process was without the lock at most.
type gap struct {
	mu      sync.Mutex
	turns   int
	last    time.Time
	longest time.Duration
}

// work takes the lock for 5 ms again and again.
func (g *gap) work(ctx context.Context, t *testing.T, l *core.Locker) {
	for ctx.Err() == nil {
		k, err := l.Lock(ctx, "k")
		if err != nil {
			return
		}
		g.mu.Lock()
		now := time.Now()
		g.turns++
		g.longest = max(g.longest, now.Sub(g.last))
		g.last = now
		g.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		unlock(t, k)
	}
}
