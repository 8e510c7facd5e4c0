package core_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// An EXPIRE by hand does not keep the lock of a dead process, in whatever form.
func TestExpireByHandOfALockOfADeadProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, hold := range map[string]func(t *testing.T, l *core.Locker, key string){
		"held": func(t *testing.T, l *core.Locker, key string) { take(t, background, l, key) },
		"entered again": func(t *testing.T, l *core.Locker, key string) {
			take(t, take(t, background, l, key).Context(), l, key)
		},
		"the outer one was unlocked": func(t *testing.T, l *core.Locker, key string) {
			k := take(t, background, l, key)
			take(t, k.Context(), l, key)
			unlock(t, k)
		},
		"a chosen owner": func(t *testing.T, l *core.Locker, key string) {
			for range 2 {
				take(t, background, l, key, core.Owner("job"))
			}
		},
		"shared":  func(t *testing.T, l *core.Locker, key string) { take(t, background, l, key, core.Shared()) },
		"permits": func(t *testing.T, l *core.Locker, key string) { take(t, background, l, key, core.Permits(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := server.Proxy(t)
			dead, err := core.New(proxy.Client(t), core.Lease(time.Second), quiet)
			if err != nil {
				t.Fatal(err)
			}
			hold(t, dead, name)
			proxy.Refuse(t, true)
			proxy.KillConnections()
			if set, err := server.Client(t).PExpire(background, "lock:"+name, time.Hour).Result(); !set || err != nil {
				t.Fatal(set, err)
			}
			unlock(t, take(t, within(inTheEnd), onRedis(t, server.Client(t)), name))
			_ = dead.Close(within(time.Second))
		})
	}
}
