package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A replica whose clock is ahead ends a lock early, and a failover then gives it to a
// second holder: that is logged at the first lock.
// Taken out, nobody is told. Tried: this test then fails with "warned 0 times".
func TestReplicasWhoseClocksDifferAreToldOf(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replicaOf(t, master)
	behind := func(t *testing.T, d time.Duration) *redis.Client {
		proxy := master.Proxy(t)
		if d != 0 {
			seconds := fmt.Sprint(time.Now().Add(-d).Unix())
			proxy.Answer(redistest.Command("time"), fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(seconds), seconds), redistest.Always())
		}
		return proxy.Client(t)
	}
	for name, c := range map[string]struct {
		client *redis.Client
		want   int
	}{
		"40 s":                 {behind(t, 40*time.Second), 1},
		"none":                 {behind(t, 0), 0},
		"no permission to ask": {user(t, master, "~lock:*", "&*", "+@all", "-info"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			log := &records{}
			l, err := core.New(c.client, core.Logger(log.logger()), core.Replicas(1, 500*time.Millisecond), core.Lease(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				unlock(t, take(t, background, l, "k"))
			}
			if err := l.Close(background); err != nil {
				t.Error(err)
			}
			warned := 0
			for _, line := range log.all() {
				if strings.Contains(line, "clock differs") {
					warned++
				}
			}
			if warned != c.want {
				t.Errorf("warned %d times; want %d: %q", warned, c.want, log.all())
			}
		})
	}
}
