//go:build go1.25

package core_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// A replica whose clock is off by more than a tenth of the lease is warned of, once.
func TestClocksOfReplicasAreCompared(t *testing.T) {
	for name, c := range map[string]struct {
		ahead time.Duration
		slow  time.Duration // its answer
		want  int
	}{
		"more than is allowed": {4 * time.Second, 0, 1},
		"behind":               {-4 * time.Second, 0, 1},
		"less":                 {2 * time.Second, 0, 0},
		"perhaps less":         {-2500 * time.Millisecond, 1200 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				replica := newEmbedded(t)
				replica.SetTime(time.Now().Add(c.ahead))
				replica.fail("time", lateRequest(c.slow))
				host, port, _ := net.SplitHostPort(replica.addr)
				s.failAll(func(_ *embedded, p *peer, cmd string, _ []string) bool {
					if cmd == "INFO" {
						p.WriteBulk(fmt.Sprintf("# Replication\r\nrole:master\r\nslave0:ip=%s,port=%s,state=online\r\n", host, port))
					} else {
						p.WriteInt(1)
					}
					return true
				}, "info", "wait")
				client := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
					if addr == replica.addr {
						return replica.dial(ctx, network, addr)
					}
					return s.dial(ctx, network, addr)
				}})
				defer client.Close()
				log := &records{}
				l, err := core.New(client, core.Logger(log.logger()), core.Replicas(1, 100*time.Millisecond), core.Lease(30*time.Second))
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					unlock(t, take(t, background, l, "k"))
				}
				synctest.Wait()
				if err := l.Close(background); err != nil {
					t.Error(err)
				}
				if all := log.all(); len(all) != c.want || c.want > 0 && !strings.Contains(all[0], "clock differs") {
					t.Errorf("%q", all)
				}
			})
		})
	}
}
